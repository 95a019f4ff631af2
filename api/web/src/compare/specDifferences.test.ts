import { expect, test } from "vitest"

import { count } from "../format/numbers"
import { specDifferences } from "./specDifferences"

test("what differs is told by its path and in words, and the name of a job is no part of it", () => {
  const found = specDifferences([
    { name: "a", device: "0", train: { lr: 0.1, steps: 20_000 } },
    { name: "b", device: "0", train: { lr: 0.2, steps: 1, augment: ["flip"] } },
  ])
  expect(found).toEqual([
    { field: "train.lr", values: ["0.1", "0.2"] },
    { field: "train.steps", values: [count(20_000), "1"] },
    { field: "train.augment", values: [null, '["flip"]'] },
  ])
})

test("what is null is told from what is not there", () => {
  expect(specDifferences([{ host: null }, {}])).toEqual([{ field: "host", values: ["null", null] }])
})
