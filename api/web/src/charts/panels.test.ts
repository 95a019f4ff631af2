import { expect, it } from "vitest"

import { sectionsOf } from "./panels"

const NAMES = ["val/loss", "lr", "train/loss", "train/acc", "gpu/heat"]

it("has a part for each prefix, training first and what has none last", () => {
  const sections = sectionsOf(NAMES, { isTogether: false })
  expect(sections.map(({ title }) => title)).toEqual(["train", "val", "gpu", "other"])
  expect(sections[0]?.panels.map(({ title }) => title)).toEqual(["train/acc", "train/loss"])
})

it("puts metrics of one name together, training before validation", () => {
  const [all] = sectionsOf(NAMES, { isTogether: true })
  expect(all?.panels.find(({ title }) => title === "loss")?.names).toEqual(["train/loss", "val/loss"])
  expect(all?.panels.map(({ title }) => title)).toContain("train/acc")
})

it("has nothing of nothing", () => {
  expect(sectionsOf([], { isTogether: true })).toEqual([])
  expect(sectionsOf([], { isTogether: false })).toEqual([])
})
