import { describe, expect, test } from "vitest"

import type { Job } from "../api/types"
import { settled_s, shareDone, timeLeft_s } from "./progress"

const BEGAN = "2026-03-01T12:00:00Z"
const NOW = Date.parse(BEGAN) + 100_000

function job(changes: Partial<Job>): Job {
  return {
    state: "running",
    attempt: 1,
    started_at: BEGAN,
    progress: { step: 50, total_steps: 200, batch: 64, accumulate: 1, values: { "train/images_per_s": 128 } },
    ...changes,
  } as Job
}

describe("time left", () => {
  test("a first attempt's goes by the pace since its start", () => {
    expect(timeLeft_s(job({}), NOW)).toBe(300)
  })

  test("it is not known in the first seconds, nor before the first step, nor without a known end", () => {
    expect(timeLeft_s(job({}), Date.parse(BEGAN) + 5_000)).toBeNull()
    expect(timeLeft_s(job({ progress: { step: 0, total_steps: 200, values: {} } }), NOW)).toBeNull()
    expect(timeLeft_s(job({ progress: { step: 7, values: {} } }), NOW)).toBeNull()
  })

  test("a later attempt's goes by the throughput, as a pause counts as no training", () => {
    expect(timeLeft_s(job({ attempt: 2 }), NOW)).toBe(75)
  })

  test("a later attempt whose beginning is known goes by its own steps", () => {
    expect(timeLeft_s(job({ attempt: 2 }), NOW, { started_at: BEGAN, resumed_step: 40 })).toBe(1500)
  })

  test("a job that does not run has none", () => {
    expect(timeLeft_s(job({ state: "paused" }), NOW)).toBeNull()
  })

  test("it is rounded the more coarsely the longer it is", () => {
    expect([1, 42, 130, 3_700, 10_000].map(settled_s)).toEqual([5, 40, 120, 3_720, 10_800])
  })
})

test("a job that has succeeded is done, also one that ended early", () => {
  expect(shareDone(job({ state: "succeeded" }))).toBe(1)
  expect(shareDone(job({}))).toBe(0.25)
  expect(shareDone(job({ progress: null }))).toBeNull()
})
