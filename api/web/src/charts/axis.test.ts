import { describe, expect, it } from "vitest"

import type { Metric } from "../api/types"
import { place, positions, stepsWithin } from "./axis"
import { curveOf } from "./curve"

const START = Date.parse("2026-01-01T00:00:00Z")

function curve(...points: [step: number, epoch: number, seconds: number][]) {
  return curveOf(
    points.map(([step, epoch, seconds]): Metric => ({
      name: "loss",
      step,
      epoch,
      attempt: 1,
      at: new Date(START + seconds * 1000).toISOString(),
      value: 1,
      kind: null,
    })),
  )
}

const origin = { startedAt: START, stepsPerEpoch: 4 }

describe("positions", () => {
  const points = curve([2, 1, 10], [4, 1, 20], [6, 2, 40])

  it("counts epochs by their steps", () => {
    expect(positions(points, "epoch", origin)).toEqual([0.5, 1, 1.5])
  })

  it("spreads the points of an epoch over it where its steps are not known", () => {
    expect(positions(points, "epoch", { ...origin, stepsPerEpoch: null })).toEqual([0.5, 1, 2])
  })

  it("counts time from the job's start, or from the first value where that is not known", () => {
    expect(positions(points, "elapsed", origin)).toEqual([10, 20, 40])
    expect(positions(points, "elapsed", { ...origin, startedAt: null })).toEqual([0, 10, 30])
  })
})

describe("stepsWithin", () => {
  const points = curve([2, 1, 10], [4, 1, 20], [6, 2, 40])

  it("rounds a range of steps outwards", () => {
    expect(stepsWithin([points], [1.5, 4.2], "step", origin)).toEqual({ from: 1, to: 5 })
    expect(stepsWithin([points], [-3, 4], "step", origin)).toEqual({ from: 0, to: 4 })
  })

  it("finds the steps of a time, open at the end where the newest is among them", () => {
    expect(stepsWithin([points], [5, 25], "elapsed", origin)).toEqual({ from: 2, to: 4 })
    expect(stepsWithin([points], [15, 50], "elapsed", origin)).toEqual({ from: 4, to: null })
    expect(stepsWithin([points], [500, 600], "elapsed", origin)).toBeNull()
  })
})

describe("place", () => {
  it("says time in the time zone that is set, as finely as its neighbours are apart", () => {
    const at = START / 1000
    expect(place(at, "clock", "Asia/Tokyo", 86_400)).toContain("1")
    expect(place(at, "clock", "Asia/Tokyo", 60)).toMatch(/0?9:00/)
    expect(place(at, "clock", "UTC", 1)).toMatch(/(12|0?0):00:00/)
  })

  it("says steps, epochs and durations", () => {
    expect(place(1234, "step", "UTC")).toBe((1234).toLocaleString())
    expect(place(1.5, "epoch", "UTC")).toBe((1.5).toLocaleString())
    expect(place(90, "elapsed", "UTC")).toBe("1 min 30 s")
  })
})
