import { expect, test } from "vitest"

import { changed, draftOf, isUnreadable, jsonOf, jsonProblem, type Draft } from "./draft"

const begun = draftOf({ train: { model: "resnet18", lr: 0.2, options: { mixup: 1 } }, priority: 60 })

test("a value that is taken back is sent no more, and train stays where nothing is left of it", () => {
  const draft = changed(draftOf({ train: { lr: 0.2 } }), { kind: "set", path: ["train", "lr"], value: undefined })
  expect(draft.spec).toEqual({ train: {} })
})

test("the text of a field stays as it was typed until it is set otherwise", () => {
  const typed = { text: "0.", problem: null }
  const draft = changed(begun, { kind: "set", path: ["train", "lr"], value: 0, typed })
  expect(draft.texts["train.lr"]).toEqual(typed)
  expect(changed(draft, { kind: "set", path: ["train", "lr"], value: undefined }).texts).toEqual({})
})

test("a number of devices that is emptied does not become any device", () => {
  const draft = changed(draftOf({ train: {}, device: { count: 2 } }), {
    kind: "set",
    path: ["device", "count"],
    value: undefined,
  })
  expect(draft.spec.device).toEqual({})
})

test("another recipe has other models and options, and the same training otherwise", () => {
  const draft = changed(begun, { kind: "recipe", recipe: "detection" })
  expect(draft.spec).toEqual({ train: { recipe: "detection", lr: 0.2 }, priority: 60 })
})

test("a program of one's own takes nothing of a training", () => {
  expect(changed(begun, { kind: "recipe", recipe: "script" }).spec).toEqual({
    train: { recipe: "script" },
    priority: 60,
  })
})

test("JSON that is typed is the spec, and while it is torn the spec is the last one that could be read", () => {
  const torn = changed(begun, { kind: "json", text: '{"train": {' })
  expect(torn.spec).toEqual(begun.spec)
  expect(jsonProblem(torn)).toContain("not JSON")
  expect(isUnreadable(torn)).toBe(true)
  const whole = changed(torn, { kind: "json", text: '{"train": {"lr": 1}}' })
  expect(whole.spec).toEqual({ train: { lr: 1 } })
  expect(isUnreadable(whole)).toBe(false)
  expect(jsonOf(whole)).toBe('{"train": {"lr": 1}}')
})

test("JSON that is no object is no spec", () => {
  expect(jsonProblem(changed(begun, { kind: "json", text: "[1]" }))).toContain("object")
})

test("a field that is set after JSON was typed has the last word", () => {
  const torn: Draft = changed(begun, { kind: "json", text: "{" })
  const draft = changed(torn, { kind: "set", path: ["name"], value: "a" })
  expect(draft.json).toBeNull()
  expect(JSON.parse(jsonOf(draft))).toMatchObject({ name: "a", priority: 60 })
})
