import { expect, test } from "vitest"

import { chosenIn, MOST_JOBS } from "./chosenJobs"

test("as many jobs are compared as there are lines to tell apart, and of the others it is said how many", () => {
  const many = Array.from({ length: 30 }, (_, index) => index + 1)
  expect(chosenIn(many.join(","))).toEqual({ chosen: many.slice(0, MOST_JOBS), leftOut: 30 - MOST_JOBS })
  expect(chosenIn("5,3,5,x")).toEqual({ chosen: [5, 3], leftOut: 0 })
})
