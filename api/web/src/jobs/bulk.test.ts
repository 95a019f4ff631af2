import { expect, test } from "vitest"

import type { Job } from "../api/types"
import { doToAll, failuresInWords } from "./bulk"

test("only so many requests are under way at once, and all are made", async () => {
  let underWay = 0
  let most = 0
  const { done, failed } = await doToAll(
    Array.from({ length: 50 }, (_, index) => index + 1),
    async (id) => {
      most = Math.max(most, ++underWay)
      await Promise.resolve()
      underWay -= 1
      return { id } as Job
    },
  )
  expect([done.length, failed.length, most]).toEqual([50, 0, 4])
})

test("what is refused keeps nothing else from being done, and is told with its reason", async () => {
  const outcome = await doToAll([1, 2, 3, 4, 5, 6], (id) =>
    id % 3 === 0 ? Promise.resolve({ id } as Job) : Promise.reject(new Error(`it is over (${id})`)),
  )
  expect(failuresInWords("Pause", outcome)).toBe(
    "Pause: 2 of 6 jobs done. Refused: job 1: it is over (1) · job 2: it is over (2) · job 4: it is over (4) · and 1 more",
  )
})
