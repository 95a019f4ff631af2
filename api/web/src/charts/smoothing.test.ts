import { expect, it } from "vitest"

import { smoothed } from "./smoothing"

it("begins at the first value and not at zero", () => {
  const [first, second] = smoothed([4, 8], 0.5)
  expect(first).toBeCloseTo(4)
  // (0.5·(0.5·4) + 0.5·8) / (1 − 0.25)
  expect(second).toBeCloseTo(20 / 3)
})

it("leaves a constant as it is, to the last bit", () => {
  expect(smoothed([0.1, 0.1, null, 0.1], 0.97)).toEqual([0.1, 0.1, null, 0.1])
})

it("has a gap where there is no value, and goes on behind it as if there were none", () => {
  const withGap = smoothed([1, null, 3], 0.6)
  const without = smoothed([1, 3], 0.6)
  expect(withGap).toEqual([without[0], null, without[1]])
})

it("changes nothing with no weight of the past", () => {
  expect(smoothed([1, 5, 2], 0)).toEqual([1, 5, 2])
})
