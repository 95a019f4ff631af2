import { expect, it } from "vitest"

import type { JobEvent, State } from "../../api/types"
import { secondsByState, stretchesOf } from "./stretches"

function moved(second: number, to_state: State | null, attempt = 0): JobEvent {
  const at = `2026-03-01T12:00:${String(second).padStart(2, "0")}Z`
  return { id: second, attempt, at, kind: "state", from_state: null, to_state, detail: {} }
}

const NOW = new Date("2026-03-01T12:01:00Z").getTime()

it("Each state lasts until the next one, and the last until now", () => {
  const stretches = stretchesOf([
    moved(0, "queued"),
    moved(5, "starting", 1),
    moved(7, null, 1),
    moved(10, "running", 1),
  ])
  expect(stretches.map(({ state, to }) => [state, to?.slice(17, 19) ?? null])).toEqual([
    ["queued", "05"],
    ["starting", "10"],
    ["running", null],
  ])
  expect(secondsByState(stretches, NOW)).toEqual([
    ["queued", 5],
    ["starting", 5],
    ["running", 50],
  ])
})

it("An end takes no time, unless the job was queued again after it", () => {
  expect(stretchesOf([moved(0, "queued"), moved(5, "cancelled")]).map(({ state }) => state)).toEqual(["queued"])
  const retried = stretchesOf([
    moved(0, "queued"),
    moved(5, "failed", 1),
    moved(20, "queued", 1),
    moved(30, "starting", 2),
  ])
  expect(secondsByState(retried, NOW)).toEqual([
    ["queued", 15],
    ["failed", 15],
    ["starting", 30],
  ])
})

it("States that begin in the same moment are told apart", () => {
  const moves = [moved(3, "queued"), moved(4, "starting"), moved(5, "running")].map((each) => ({ ...each, at: "x" }))
  expect(stretchesOf(moves).map(({ id }) => id)).toEqual([3, 4, 5])
})
