import { expect, test } from "vitest"

import { ofWhatIsSet, placed, stillTrue } from "./refusals"

const IDS = new Set(["device", "device.count", "train.batch", "train.augment", "train.options.mixup"])

test("an error is at the innermost field that is, or holds, what it names", () => {
  const { at, rest } = placed(
    [
      { field: "train.batch", message: "odd" },
      { field: "train.batch", message: "large" },
      { field: "train.augment.0", message: "unknown" },
      { field: "device.x", message: "no such field" },
      { field: "device.count", message: "too many" },
    ],
    IDS,
  )
  expect(Object.fromEntries(at)).toEqual({
    "train.batch": "odd; large",
    "train.augment": "0: unknown",
    device: "x: no such field",
    "device.count": "too many",
  })
  expect(rest).toEqual([])
})

test("an error of no field is left over, and one whose name only begins like a field's is not that field's", () => {
  const errors = [
    { field: "train.batches", message: "no such field" },
    { field: "body", message: "too large" },
  ]
  expect(placed(errors, IDS)).toEqual({ at: new Map(), rest: errors })
})

test("an error holds until its own field is edited", () => {
  const refusal = {
    spec: { train: { batch: 33, lr: 0.1 } },
    errors: [
      { field: "train.batch", message: "odd" },
      { field: "train.model", message: "has to be given" },
    ],
  }
  expect(stillTrue(refusal, { train: { batch: 33, lr: 0.2 } })).toHaveLength(2)
  expect(stillTrue(refusal, { train: { batch: 32, model: "resnet18" } })).toEqual([])
})

test("a form that was just opened is not told what it lacks", () => {
  const errors = [
    { field: "train.batch", message: "odd" },
    { field: "train.model", message: "has to be given" },
  ]
  expect(ofWhatIsSet(errors, { train: { batch: 33 } }).map(({ field }) => field)).toEqual(["train.batch"])
})
