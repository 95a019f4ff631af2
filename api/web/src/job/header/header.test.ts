import { describe, expect, it } from "vitest"

import { labelChanges, labelFields } from "./labels"
import { NO_PLACE, placeOf } from "./place"

describe("another place", () => {
  it("is told by what was filled in, and by nothing else", () => {
    expect(placeOf(NO_PLACE)).toEqual({})
    expect(placeOf({ device: " 0,1 ", ranks: "", host: "atlas", nodes: "2" })).toEqual({
      device: "0,1",
      host: "atlas",
      nodes: 2,
    })
    expect(placeOf({ ...NO_PLACE, device: "cpu", ranks: "4" })).toEqual({ device: "cpu", nproc_per_node: 4 })
  })

  it("can be a number of devices, or a list, as JSON", () => {
    expect(placeOf({ ...NO_PLACE, device: '{"count": 2}' })).toEqual({ device: { count: 2 } })
    expect(placeOf({ ...NO_PLACE, device: "[0, 1]" })).toEqual({ device: [0, 1] })
  })

  it("says which field cannot be read", () => {
    expect(() => placeOf({ ...NO_PLACE, device: "{count: 2}" })).toThrow("Devices: this is no JSON")
    expect(() => placeOf({ ...NO_PLACE, nodes: "1.5" })).toThrow("Hosts: 1.5 is no whole number")
  })
})

describe("edited labels", () => {
  const before = { team: "vision", sweep: "lr" }

  it("that are as they were change nothing", () => {
    expect(labelChanges(before, labelFields(before))).toEqual({})
  })

  it("are told as what is set, and as null where a key is gone", () => {
    const fields = [
      { id: 0, key: "team", value: "audio" },
      { id: 2, key: " stage ", value: "" },
      { id: 3, key: "", value: "without a key" },
    ]
    expect(labelChanges(before, fields)).toEqual({ team: "audio", stage: "", sweep: null })
  })

  it("that have another key are another label", () => {
    const fields = labelFields(before).map((each) => (each.key === "team" ? { ...each, key: "group" } : each))
    expect(labelChanges(before, fields)).toEqual({ group: "vision", team: null })
  })
})
