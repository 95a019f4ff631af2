import { expect, test } from "vitest"

import { axisOf, isSpan, place, shareOf, ticksOf } from "./axis"

const NOW = Date.parse("2026-03-01T12:00:00Z")
const MIN = 60_000
const HOUR = 60 * MIN

test("an axis reaches as far as what is foretold, and begins a little before now", () => {
  const axis = axisOf("fit", NOW, [NOW + 50 * MIN])
  expect(axis.to_ms).toBe(NOW + HOUR)
  expect(axis.from_ms).toBe(NOW - 5 * MIN)
})

test("with nothing foretold it is the shortest there is", () => {
  expect(axisOf("fit", NOW, []).to_ms).toBe(NOW + 10 * MIN)
})

test("one run of weeks among many short ones does not stretch the axis", () => {
  const short = Array.from({ length: 19 }, () => NOW + 30 * MIN)
  expect(axisOf("fit", NOW, [...short, NOW + 500 * HOUR]).to_ms).toBe(NOW + 30 * MIN)
})

test("an axis that was chosen keeps its length, and what is beyond a year is beyond the longest", () => {
  expect(axisOf("6h", NOW, [NOW + 500 * HOUR]).to_ms).toBe(NOW + 6 * HOUR)
  expect(axisOf("fit", NOW, [NOW + 1e12]).to_ms).toBe(NOW + 360 * 24 * HOUR)
})

test("ticks begin with now and stay on the axis", () => {
  const axis = axisOf("1h", NOW, [])
  const ticks = ticksOf(axis)
  expect(ticks.map(({ ahead_ms }) => ahead_ms / MIN)).toEqual([0, 10, 20, 30, 40, 50])
  expect(ticks[0]?.share).toBe(shareOf(axis, NOW))
  expect(ticks.every(({ share }) => share > 0 && share < 1)).toBe(true)
})

test("a bar is cut where the axis ends, and says so", () => {
  const axis = axisOf("1h", NOW, [])
  const all = place(axis, NOW - HOUR, NOW + 3 * HOUR)
  expect(all).toEqual({ left: 0, width: 100, isCutLeft: true, isCutRight: true })
  const half = place(axis, axis.from_ms, axis.from_ms + (axis.to_ms - axis.from_ms) / 2)
  expect(half).toEqual({ left: 0, width: 50, isCutLeft: false, isCutRight: false })
})

test("a bar with no known end reaches to the end of the axis", () => {
  const axis = axisOf("1h", NOW, [])
  const open = place(axis, NOW, null)
  expect((open?.left ?? 0) + (open?.width ?? 0)).toBeCloseTo(100)
  expect(open?.isCutRight).toBe(false)
})

test("what lies beyond the axis has no bar", () => {
  const axis = axisOf("1h", NOW, [])
  expect(place(axis, NOW + 2 * HOUR, null)).toBeNull()
  expect(place(axis, NOW - 3 * HOUR, NOW - 2 * HOUR)).toBeNull()
})

test("an address names a span or none", () => {
  expect(isSpan("7d")).toBe(true)
  expect(isSpan("8d")).toBe(false)
  expect(isSpan(null)).toBe(false)
})
