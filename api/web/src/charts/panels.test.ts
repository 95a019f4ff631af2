import { expect, it } from "vitest"

import { sectionsOf } from "./panels"

const NAMES = ["val/loss", "lr", "train/loss", "train/acc", "gpu/heat"]

it("has a part for each prefix, training first and what has none last", () => {
  const sections = sectionsOf(NAMES, { isTogether: false })
  expect(sections.map(({ title }) => title)).toEqual(["train", "val", "gpu", "other"])
  expect(sections[0]?.panels.map(({ title }) => title)).toEqual(["train/loss", "train/acc"])
})

it("has losses first in each part, and how fast it went last", () => {
  const names = ["train/images_per_s", "train/acc", "train/lr", "train/loss", "val/loss", "val/box_loss", "val/acc"]
  const titles = sectionsOf(names, { isTogether: false }).map(({ panels }) => panels.map(({ title }) => title))
  expect(titles).toEqual([
    ["train/loss", "train/acc", "train/images_per_s", "train/lr"],
    ["val/box_loss", "val/loss", "val/acc"],
  ])
  const [all] = sectionsOf(names, { isTogether: true })
  expect(all?.panels.map(({ title }) => title)).toEqual([
    "loss",
    "val/box_loss",
    "acc",
    "train/images_per_s",
    "train/lr",
  ])
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
