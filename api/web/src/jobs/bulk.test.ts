import { expect, test } from "vitest"

import { Lanes } from "../api/lanes"
import type { Job } from "../api/types"
import { doToAll, failuresInWords } from "./bulk"
import { firstCommands } from "./firstCommands"

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

test("a request that was given up before its turn is never made", async () => {
  const lanes = new Lanes(1)
  const given = new AbortController()
  const made: string[] = []
  const first = lanes.run(async () => {
    await Promise.resolve()
    made.push("first")
  })
  const second = lanes.run(() => Promise.resolve(made.push("second")), given.signal)
  const third = lanes.run(() => Promise.resolve(made.push("third")))
  given.abort(new Error("scrolled past"))
  await expect(second).rejects.toThrow("scrolled past")
  await Promise.all([first, third])
  expect(made).toEqual(["first", "third"])
})

test("the first commands name the service where it is not the usual one, and never a token", () => {
  expect(firstCommands({ address: "http://127.0.0.1:8000", wantsToken: false }).command).toBe(
    "rankzero submit --model resnet18 --data digits \\\n  --set image_size=32 --epochs 5 --lr 0.05",
  )
  const { command, curl } = firstCommands({ address: "https://gpu.example/rz", wantsToken: true })
  expect(command.split("\n")).toEqual([
    "rankzero login --url https://gpu.example/rz",
    "rankzero submit --model resnet18 --data digits \\",
    "  --set image_size=32 --epochs 5 --lr 0.05 --url https://gpu.example/rz",
  ])
  expect(curl).toContain('"Authorization: Bearer $RANKZERO_TOKEN"')
})
