import { expect, test } from "vitest"

import { areEqual, patchBetween, valueAt, withValue } from "./json"

test("a value is set at a path without a change to what was there", () => {
  const before = { train: { lr: 0.1 } }
  expect(withValue(before, ["train", "options", "mixup"], 0.2)).toEqual({ train: { lr: 0.1, options: { mixup: 0.2 } } })
  expect(before).toEqual({ train: { lr: 0.1 } })
})

test("an object that is left empty goes with its last value", () => {
  expect(withValue({ name: "a", device: { count: 2 } }, ["device", "count"], undefined)).toEqual({ name: "a" })
})

test("a field that an object inherits is not there", () => {
  expect(valueAt({ a: 1 }, ["toString"])).toBeUndefined()
  expect(areEqual({ toString: 1 }, { other: 1 })).toBe(false)
})

test("a merge patch names what is new, what differs, and with null what is gone", () => {
  const from = { priority: 50, labels: { team: "a", kept: "b" }, device: "cuda:0", train: { lr: 0.1, freeze: ["x"] } }
  const to = { labels: { team: "c", kept: "b" }, device: { count: 2 }, train: { lr: 0.1, freeze: ["x", "y"] } }
  expect(patchBetween(from, to)).toEqual({
    priority: null,
    labels: { team: "c" },
    device: { count: 2 },
    train: { freeze: ["x", "y"] },
  })
})

test("a merge patch between equals is empty, whatever the order of their fields", () => {
  expect(patchBetween({ a: { b: 1, c: [2] } }, { a: { c: [2], b: 1 } })).toEqual({})
})
