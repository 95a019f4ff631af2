import { expect, test } from "vitest"

import { jobIdIn, jobIdsIn } from "./jobId"

test("a number is one that a job can have, or none", () => {
  expect(["7", "0", "-1", "07", "2.5", "1e3", "", "9".repeat(16)].map(jobIdIn)).toEqual([
    7,
    ...Array<null>(7).fill(null),
  ])
})

test("numbers are read each once and in their order, and what is none is passed over", () => {
  expect(jobIdsIn("5,3,5,x,0")).toEqual([5, 3])
  expect(jobIdsIn(null)).toEqual([])
})
