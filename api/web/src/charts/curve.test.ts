import { describe, expect, it } from "vitest"

import type { Metric } from "../api/types"
import { curveOf, EMPTY, extremes, thinned, united } from "./curve"

function metric(step: number, value: number | null, more: Partial<Metric> = {}): Metric {
  return { name: "loss", step, epoch: 1, attempt: 1, at: "2026-01-01T00:00:00Z", value, kind: null, ...more }
}

describe("curveOf", () => {
  it("orders values by step, and keeps of one step that of the newest attempt", () => {
    const curve = curveOf([metric(3, 3), metric(1, 1, { attempt: 2 }), metric(1, 9), metric(2, 2)])
    expect(curve.steps).toEqual([1, 2, 3])
    expect(curve.values).toEqual([1, 2, 3])
    expect(curve.attempts).toEqual([2, 1, 1])
  })

  it("keeps what a value was that is not finite", () => {
    const curve = curveOf([metric(1, null, { kind: "nan" })])
    expect(curve.values).toEqual([null])
    expect(curve.kinds).toEqual(["nan"])
  })
})

describe("united", () => {
  it("has the points of both in order", () => {
    const both = united(curveOf([metric(1, 1), metric(4, 4)]), curveOf([metric(2, 2), metric(5, 5)]))
    expect(both.steps).toEqual([1, 2, 4, 5])
  })

  it("lets a newer attempt replace a step, and no older one", () => {
    const old = curveOf([metric(1, 1), metric(2, 2)])
    const anew = curveOf([metric(2, 20, { attempt: 2 })])
    expect(united(old, anew).values).toEqual([1, 20])
    expect(united(anew, old).values).toEqual([1, 20])
  })

  it("is the same again when the same news come twice", () => {
    const curve = curveOf([metric(1, 1), metric(2, 2)])
    expect(united(curve, curveOf([metric(2, 2)])).values).toEqual([1, 2])
    expect(united(curve, EMPTY)).toBe(curve)
  })
})

describe("thinned", () => {
  const many = Array.from({ length: 10_000 }, (_, step) => metric(step, Math.sin(step / 100)))

  it("leaves a curve alone that is short enough", () => {
    const curve = curveOf(many.slice(0, 100))
    expect(thinned(curve, 100)).toBe(curve)
  })

  it("keeps first, last, lowest and highest, and no more than it may", () => {
    many[4_321] = metric(4_321, 50)
    many[7_654] = metric(7_654, -50)
    const thin = thinned(curveOf(many), 300)
    expect(thin.steps.length).toBeLessThanOrEqual(300)
    expect(thin.steps[0]).toBe(0)
    expect(thin.steps.at(-1)).toBe(9_999)
    expect(thin.values).toContain(50)
    expect(thin.values).toContain(-50)
    expect(thin.steps.every((step, index) => index === 0 || step > (thin.steps[index - 1] ?? 0))).toBe(true)
  })

  it("keeps a value that is not finite", () => {
    many[5_000] = metric(5_000, null, { kind: "inf" })
    expect(thinned(curveOf(many), 300).kinds).toContain("inf")
  })
})

describe("extremes", () => {
  it("finds last, lowest and highest, and counts what is not finite", () => {
    const found = extremes([1, 2, 3, 4], [3, 1, null, 2], [null, null, "nan", null])
    expect(found).toEqual({
      last: { at: 4, value: 2, kind: null },
      lowest: { at: 2, value: 1 },
      highest: { at: 1, value: 3 },
      gaps: 1,
    })
  })

  it("finds nothing in nothing", () => {
    expect(extremes([], [])).toEqual({ last: null, lowest: null, highest: null, gaps: 0 })
  })
})
