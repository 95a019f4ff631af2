import { expect, it } from "vitest"

import type { Checkpoint } from "../../api/types"
import { lastOf, valueNames } from "./useCheckpoints"

function saved(id: number, step: number, others: Partial<Checkpoint> = {}): Checkpoint {
  return { id, step, removed_at: null, values: {}, ...others } as Checkpoint
}

it("a job goes on from the furthest file that is there, the newest of several", () => {
  const removed = { removed_at: "2026-03-01T12:00:00Z" }
  expect(lastOf([saved(5, 40), saved(4, 80, removed), saved(3, 60), saved(2, 60)])?.id).toBe(3)
  expect(lastOf([saved(1, 10, removed)])).toBeUndefined()
})

it("values stand in the order in which checkpoints have them, each once", () => {
  const all = [saved(2, 2, { values: { "val/loss": 1 } }), saved(1, 1, { values: { acc: 1, "val/loss": null } })]
  expect(valueNames(all)).toEqual(["val/loss", "acc"])
})
