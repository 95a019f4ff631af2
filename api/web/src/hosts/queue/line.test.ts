import { expect, test } from "vitest"

import { hasFirst, inLine, type WaitingJob } from "./line"

function waiting(id: number, position: number | null): WaitingJob {
  return {
    id,
    position,
    name: `job ${id}`,
    user: null,
    priority: 50,
    spec: {},
    reason: null,
    predicted_start: null,
    waits_for: [],
  }
}

test("jobs stand by their place, and those that no plan has seen come last in the order of their submission", () => {
  const jobs = [waiting(9, null), waiting(7, 2), waiting(8, null), waiting(3, 1)]
  expect(inLine(jobs).map(({ id }) => id)).toEqual([3, 7, 8, 9])
})

test("the first of a line are known when no place among them is missing", () => {
  const jobs = [waiting(3, 1), waiting(7, 3), waiting(8, 2)]
  expect(hasFirst(jobs, 3)).toBe(true)
  expect(hasFirst(jobs, 4)).toBe(false)
})
