import { describe, expect, it } from "vitest"

import type { JobEvent } from "../../api/types"
import { classFigures, eventWords } from "./eventWords"

function event(kind: string, detail: Record<string, unknown>, more: Partial<JobEvent> = {}): JobEvent {
  return { id: 1, attempt: 1, at: "2026-03-01T12:00:00Z", kind, from_state: null, to_state: null, detail, ...more }
}

describe("an event in words", () => {
  it("says where an attempt is placed", () => {
    const detail = {
      placements: [
        { host: "atlas", devices: ["cuda:0", "cuda:1"] },
        { host: "boreas", devices: ["cuda:0"] },
      ],
    }
    expect(eventWords(event("state", detail, { from_state: "queued", to_state: "starting" }))).toEqual({
      title: "queued → starting",
      more: "cuda:0, cuda:1 on atlas; cuda:0 on boreas",
    })
  })

  it("says why an attempt ended", () => {
    const detail = { outcome: "failed", cause: "out_of_memory", message: "no room for 2 GiB", rank: 1 }
    expect(eventWords(event("state", detail, { from_state: "running", to_state: "failed" })).more).toBe(
      "The attempt ended: failed · Out of memory · rank 1 · no room for 2 GiB",
    )
  })

  it("says what was asked for", () => {
    expect(eventWords(event("intent", { intent: "pause" })).title).toBe("Asked to pause")
  })

  it("says what was changed from what to what", () => {
    const detail = { priority: { from: 50, to: 90 }, labels: { from: {}, to: { team: "vision" } } }
    expect(eventWords(event("change", detail)).more).toBe("priority: 50 → 90, labels: none → team=vision")
  })

  it("has an epoch's values, also those that are not finite", () => {
    const detail = {
      epoch: 2,
      step: 40,
      seconds: 3.2,
      values: { "val/loss": null, "val/accuracy": 0.5 },
      nonfinite: { "val/loss": "nan" },
    }
    expect(eventWords(event("epoch", detail))).toEqual({
      title: "Epoch 2 ended",
      more: "step 40 · took 3 s · val/loss NaN · val/accuracy 0.5",
    })
  })

  it("has the level and the text of what was logged", () => {
    expect(eventWords(event("log", { level: "warning", message: "slow disk" }))).toEqual({
      title: "Warning",
      more: "slow disk",
    })
  })

  it("shows what a kind of a later release says of itself", () => {
    expect(eventWords(event("moved", { to: "atlas", why: null }))).toEqual({
      title: "moved",
      more: "to: atlas, why: none",
    })
  })
})

it("Figures of each class are there for an epoch that has any", () => {
  const detail = { epoch: 1, by_class: { cat: { precision: 0.5, recall: 0.25 }, dog: { precision: 1 } } }
  expect(classFigures(event("epoch", detail))).toEqual({
    names: ["precision", "recall"],
    rows: [
      ["cat", { precision: 0.5, recall: 0.25 }],
      ["dog", { precision: 1 }],
    ],
  })
  expect(classFigures(event("epoch", { epoch: 1, by_class: {} }))).toBeNull()
  expect(classFigures(event("log", { by_class: { cat: { recall: 1 } } }))).toBeNull()
})
