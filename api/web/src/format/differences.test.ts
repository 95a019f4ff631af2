import { expect, test } from "vitest"

import { differencesOf } from "./differences"

test("only the innermost fields that differ are told, also within a group that one side lacks", () => {
  const found = differencesOf([
    { device: "0", train: { lr: 0.1, model: "resnet18" } },
    { device: "0", train: { lr: 0.2, model: "resnet18", options: { depth: 3 } } },
  ])
  expect(found).toEqual([
    { path: ["train", "lr"], values: [0.1, 0.2] },
    { path: ["train", "options", "depth"], values: [undefined, 3] },
  ])
})

test("a list is one value, as its parts have no names", () => {
  const [one, other] = [["flip", "crop"], ["flip"]]
  expect(differencesOf([{ augment: one }, { augment: other }])).toEqual([{ path: ["augment"], values: [one, other] }])
})

test("what is null, or a group with nothing in it, is not what is not there", () => {
  expect(differencesOf([{ host: null, labels: {} }, {}])).toEqual([
    { path: ["host"], values: [null, undefined] },
    { path: ["labels"], values: [{}, undefined] },
  ])
})

test("a group beside a plain value is told whole", () => {
  expect(differencesOf([{ device: { count: 2 } }, { device: "cpu" }])).toEqual([
    { path: ["device"], values: [{ count: 2 }, "cpu"] },
  ])
})

test("equal objects differ in nothing, whatever the order of their fields", () => {
  expect(
    differencesOf([
      { a: 1, b: { c: 2, d: 3 } },
      { b: { d: 3, c: 2 }, a: 1 },
      { a: 1, b: { c: 2, d: 3 } },
    ]),
  ).toEqual([])
})
