import { describe, expect, it } from "vitest"

import { movedBy, viewOf, withChanges, zoomedBy } from "./view"

describe("viewOf", () => {
  it("reads what the address says", () => {
    expect(viewOf(new URLSearchParams("axis=clock&smoothing=0.6&scale=log&together=1&zoom=10..20.5"))).toEqual({
      axis: "clock",
      smoothing: 0.6,
      isLog: true,
      isTogether: true,
      zoom: [10, 20.5],
    })
  })

  it("passes over what makes no sense", () => {
    const nothing = { axis: "step", smoothing: 0, isLog: false, isTogether: false, zoom: null }
    expect(viewOf(new URLSearchParams("axis=miles&smoothing=7&zoom=20..10"))).toEqual(nothing)
    expect(viewOf(new URLSearchParams("smoothing=x&zoom=..3"))).toEqual(nothing)
  })
})

describe("withChanges", () => {
  it("leaves other parameters alone and what is as usual out", () => {
    const changed = withChanges(new URLSearchParams("jobs=3,5&smoothing=0.5"), { smoothing: 0, zoom: [1, 2.123456789] })
    expect(changed.get("jobs")).toBe("3,5")
    expect(changed.has("smoothing")).toBe(false)
    expect(changed.get("zoom")).toBe("1..2.123457")
  })

  it("forgets the zoom with the axis that it was on", () => {
    const before = new URLSearchParams("zoom=1..2")
    expect(withChanges(before, { axis: "epoch" }).has("zoom")).toBe(false)
    expect(withChanges(before, { axis: "step" }).get("zoom")).toBe("1..2")
  })
})

describe("zooming by buttons", () => {
  it("comes nearer about the middle", () => {
    expect(zoomedBy([0, 100], [0, 100], 2)).toEqual([25, 75])
  })

  it("shows all again when it goes far enough", () => {
    expect(zoomedBy([25, 75], [0, 100], 0.5)).toBeNull()
  })

  it("moves without leaving what there is", () => {
    expect(movedBy([20, 40], [0, 100], 0.5)).toEqual([30, 50])
    expect(movedBy([70, 90], [0, 100], 1)).toEqual([80, 100])
    expect(movedBy([10, 30], [0, 100], -1)).toEqual([0, 20])
  })
})
