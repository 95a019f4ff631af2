import { expect, it } from "vitest"

import type { Attempt } from "../../api/types"
import { marksOf } from "./attemptMarks"

const START = "2026-01-01T00:00:00Z"

function attempt(number: number, more: Partial<Attempt> = {}): Attempt {
  return {
    number,
    outcome: null,
    failure: null,
    stop_message: null,
    world_size: 1,
    resumed_step: null,
    resume_checkpoint_id: null,
    created_at: START,
    started_at: START,
    ended_at: null,
    placements: [],
    ...more,
  }
}

const origin = { startedAt: Date.parse(START), stepsPerEpoch: 10 }

it("marks where an attempt went on, on each axis", () => {
  const second = attempt(2, { resumed_step: 40, started_at: "2026-01-01T00:01:00Z" })
  const at = (axis: Parameters<typeof marksOf>[1]) => marksOf([attempt(1), second], axis, origin).map(({ x }) => x)
  expect(at("step")).toEqual([40])
  expect(at("epoch")).toEqual([4])
  expect(at("elapsed")).toEqual([60])
  expect(at("clock")).toEqual([Date.parse(START) / 1000 + 60])
})

it("marks the first attempt only where it continued a checkpoint", () => {
  expect(marksOf([attempt(1)], "step", origin)).toEqual([])
  expect(marksOf([attempt(1, { resumed_step: 5 })], "step", origin)).toHaveLength(1)
})

it("says of an attempt that began anew that it did", () => {
  expect(marksOf([attempt(1), attempt(2)], "step", origin)).toEqual([
    { x: 0, label: "attempt 2", title: "attempt 2 began anew" },
  ])
})

it("leaves out what has not begun to train", () => {
  expect(marksOf([attempt(2, { started_at: null })], "step", origin)).toEqual([])
})
