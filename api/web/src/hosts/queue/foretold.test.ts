import { expect, test } from "vitest"

import { endOf, stretchOf } from "./foretold"

const NOW = Date.parse("2026-03-01T12:00:00Z")
const HOUR = 3_600_000
const running = {
  state: "running" as const,
  attempt: 1,
  started_at: "2026-03-01T11:00:00Z",
  progress: { step: 100, total_steps: 300, values: {} },
  spec: {},
}

test("a run ends by its pace", () => {
  expect(endOf(running, NOW)).toBe(NOW + 2 * HOUR)
})

test("a time limit ends it sooner, and is all that is known of a run with no pace", () => {
  const spec = { time_limit_s: 5_400 }
  expect(endOf({ ...running, spec }, NOW)).toBe(NOW + HOUR / 2)
  expect(endOf({ ...running, spec, progress: null }, NOW)).toBe(NOW + HOUR / 2)
  expect(endOf({ ...running, progress: null }, NOW)).toBeNull()
})

test("what earlier attempts have used of a limit is not known, so a later attempt is not foretold by it", () => {
  expect(endOf({ ...running, attempt: 2, progress: null, spec: { time_limit_s: 5_400 } }, NOW)).toBeNull()
})

test("a waiting job may take as long as its limit, or nobody knows how long", () => {
  const predicted_start = "2026-03-01T13:00:00Z"
  expect(stretchOf({ predicted_start, spec: { time_limit_s: 3_600 } }, NOW)).toEqual({
    from_ms: NOW + HOUR,
    to_ms: NOW + 2 * HOUR,
  })
  expect(stretchOf({ predicted_start, spec: { time_limit_s: null } }, NOW)?.to_ms).toBeNull()
  expect(stretchOf({ predicted_start: null, spec: {} }, NOW)).toBeNull()
})

test("a start that was foretold for the past is still to come", () => {
  expect(stretchOf({ predicted_start: "2026-03-01T11:59:00Z", spec: {} }, NOW)?.from_ms).toBe(NOW)
})
