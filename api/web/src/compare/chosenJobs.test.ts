import { expect, it } from "vitest"

import { chosenIn, MOST_JOBS } from "./chosenJobs"

it("reads numbers, each once and in their order", () => {
  expect(chosenIn("5,3,5")).toEqual([5, 3])
})

it("passes over what is no number of a job", () => {
  expect(chosenIn("x,0,-1,2.5,7,,1e3")).toEqual([7])
  expect(chosenIn(null)).toEqual([])
})

it("compares no more than there are lines to tell apart", () => {
  expect(chosenIn(Array.from({ length: 30 }, (_, index) => index + 1).join(","))).toHaveLength(MOST_JOBS)
})
