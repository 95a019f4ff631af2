import { expect, it } from "vitest"

import { differencesOf } from "./specDifferences"

it("has only the fields that differ, by their paths", () => {
  const found = differencesOf([
    { name: "a", device: "0", train: { lr: 0.1, model: "resnet18", options: {} } },
    { name: "b", device: "0", train: { lr: 0.2, model: "resnet18", options: { depth: 3 } } },
  ])
  expect(found).toEqual([
    { field: "train.lr", values: ["0.1", "0.2"] },
    { field: "train.options", values: ["{}", null] },
    { field: "train.options.depth", values: [null, "3"] },
  ])
})

it("compares lists whole", () => {
  const found = differencesOf([{ train: { augment: ["flip", "crop"] } }, { train: { augment: ["flip"] } }])
  expect(found).toEqual([{ field: "train.augment", values: ['["flip","crop"]', '["flip"]'] }])
})

it("tells what is null from what is not there", () => {
  expect(differencesOf([{ host: null }, {}])).toEqual([{ field: "host", values: ["null", null] }])
})

it("finds nothing in equal specs", () => {
  expect(differencesOf([{ train: { lr: 1 } }, { train: { lr: 1 } }])).toEqual([])
})
