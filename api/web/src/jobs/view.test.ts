import { describe, expect, test } from "vitest"

import { filtersOf } from "./search"
import { between, toggled, withoutLeaving } from "./selection"
import { filtersIn, isUnfiltered, MOST_SELECTED, readView, writeView } from "./view"

function read(query: string) {
  return readView(new URLSearchParams(query))
}

describe("the search", () => {
  test("what has no word before a colon is part of the name", () => {
    expect(filtersOf("  resnet  sweep ")).toEqual({ name: "resnet sweep" })
  })

  test("each word is a filter, labels several", () => {
    expect(filtersOf('label:team=vision label:run=3 user:"ann lee" MODEL:resnet50 priority:90 cifar')).toEqual({
      label: ["team=vision", "run=3"],
      user: "ann lee",
      model: "resnet50",
      priority: 90,
      name: "cifar",
    })
  })

  test("a word that is none, or has nothing behind it, or no number for a priority, is part of the name", () => {
    expect(filtersOf("epoch:3 user: priority:high")).toEqual({ name: "epoch:3 user: priority:high" })
  })
})

test("a label that is half typed narrows nothing yet", () => {
  expect(filtersOf("label:team resnet")).toEqual({ name: "resnet" })
  expect(filtersOf("label:team= resnet")).toEqual({ label: ["team="], name: "resnet" })
})

describe("the view in the address", () => {
  test("it is read and written back as it was", () => {
    const query = "state=queued&state=failed&q=user%3Aann&sort=-priority&selected=3%2C5"
    expect(writeView(new URLSearchParams(query), {}).toString()).toBe(query)
    expect(filtersIn(read(query))).toEqual({ state: ["queued", "failed"], user: "ann", sort: "-priority" })
  })

  test("what means nothing is passed over, and the default is not written", () => {
    const view = read("state=lost&sort=loss&selected=0,x,-1,7")
    expect([view.states, view.sort, [...view.selected]]).toEqual([[], "-id", [7]])
    expect(isUnfiltered(view)).toBe(true)
    expect(writeView(new URLSearchParams("tab=2&sort=id"), { sort: "-id" }).toString()).toBe("tab=2")
  })

  test("no more jobs are selected than an address holds", () => {
    const many = new Set(Array.from({ length: 2 * MOST_SELECTED }, (_, index) => index + 1))
    expect(readView(writeView(new URLSearchParams(), { selected: many })).selected.size).toBe(MOST_SELECTED)
  })
})

describe("the selection", () => {
  const jobs = [9, 8, 7, 6, 5].map((id) => ({ id }))

  test("a job is selected, and selected again it is not", () => {
    expect([...toggled(new Set([3]), 5)]).toEqual([3, 5])
    expect([...toggled(new Set([3, 5]), 3)]).toEqual([5])
  })

  test("a range is in the order of the list, whichever end comes first", () => {
    expect([...between(new Set([1]), jobs, 6, 8)]).toEqual([1, 8, 7, 6])
    expect([...between(new Set(), jobs, 8, 6)]).toEqual([8, 7, 6])
  })

  test("a range from a job that is not loaded is the one job alone", () => {
    expect([...between(new Set(), jobs, 100, 6)]).toEqual([6])
  })

  test("what leaves the list by what was done with it is selected no more", () => {
    const done = [
      { id: 1, state: "cancelled", intent: "cancel" },
      { id: 2, state: "running", intent: "cancel" },
      { id: 3, state: "running", intent: "run" },
    ] as const
    expect([...withoutLeaving(new Set([1, 2, 3, 4]), done, ["queued", "running"])]).toEqual([3, 4])
    expect([...withoutLeaving(new Set([1, 2, 3, 4]), done, [])]).toEqual([1, 2, 3, 4])
  })
})
