import { describe, expect, it } from "vitest"

import { curveOf } from "../charts/curve"
import type { Curves } from "../charts/metricStore"
import { betterOf, finalMetrics } from "./finalMetrics"

function curves(values: Record<string, number[]>): Curves {
  return new Map(
    Object.entries(values).map(([name, its]) => [
      name,
      curveOf(
        its.map((value, step) => ({
          name,
          step,
          epoch: 1,
          attempt: 1,
          at: "2026-01-01T00:00:00Z",
          value,
          kind: null,
        })),
      ),
    ]),
  )
}

describe("betterOf", () => {
  it.each([
    ["val/loss", "lower"],
    ["val/rmse", "lower"],
    ["val/accuracy", "higher"],
    ["val/top5", "higher"],
    ["val/map50", "higher"],
    ["val/miou", "higher"],
    ["train/lr", null],
    ["train/images_per_s", null],
  ])("of %s is %s", (name, better) => {
    expect(betterOf(name)).toBe(better)
  })
})

describe("finalMetrics", () => {
  it("marks the best of all jobs by the best value that each had", () => {
    const [row] = finalMetrics([curves({ "val/loss": [3, 1, 2] }), curves({ "val/loss": [3, 2, 1.5] })])
    expect(row?.cells.map((cell) => cell?.isBest)).toEqual([true, false])
    expect(row?.cells[0]).toMatchObject({ last: "2", best: { value: 1, step: 1 } })
  })

  it("marks none where one job stands alone, or where all are equal", () => {
    const [alone] = finalMetrics([curves({ "val/loss": [1] }), curves({ "train/lr": [1] })])
    expect(alone?.name).toBe("train/lr")
    const [equal] = finalMetrics([curves({ "val/loss": [1] }), curves({ "val/loss": [1] })])
    expect(equal?.cells.some((cell) => cell?.isBest)).toBe(false)
  })

  it("has nothing where a job does not have the metric, or is not read yet", () => {
    const [row] = finalMetrics([curves({ "val/loss": [1] }), undefined])
    expect(row?.cells[1]).toBeNull()
  })
})
