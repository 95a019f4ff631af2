import { expect, test } from "vitest"

import type { Job } from "../api/types"
import { devicesInWords, trainingInWords } from "./devices"
import { causeInWords, failureInWords, intentInWords, whyHere } from "./reasons"

test("a failure is told by cause, rank and message, and the rank only once", () => {
  expect(failureInWords({ cause: "exception", message: "ValueError: no", rank: 1 })).toBe(
    "Error in the training's code on rank 1: ValueError: no",
  )
  expect(failureInWords({ cause: "hang", message: "rank 3 made no progress", rank: 3 })).toBe(
    "Hung without progress: rank 3 made no progress",
  )
  expect(failureInWords({ cause: "data", message: "data: nothing in /x", rank: 0 })).toBe(
    "Data missing or unreadable: nothing in /x",
  )
})

test("a cause of a later release is called as it is there", () => {
  expect(causeInWords("cosmic_ray")).toBe("Cosmic ray")
})

test("a queued job tells what it waits for, a running one what it is asked to do", () => {
  expect(whyHere({ state: "queued", reason: "waits for cuda:0 (job 3) on atlas" } as Job)).toBe(
    "Waits for cuda:0 (job 3) on atlas",
  )
  expect(whyHere({ state: "queued", reason: null } as Job)).toBe("Waits for the next plan")
  expect(whyHere({ state: "running", intent: "pause", finished_at: null } as Job)).toBe(
    "Saves a checkpoint, then pauses",
  )
  expect(whyHere({ state: "running", intent: "run" } as Job)).toBeNull()
})

test("what a job is asked to do is told wherever its state does not say it", () => {
  const told = (state: Job["state"], intent: Job["intent"], finished_at: string | null = null) =>
    intentInWords({ state, intent, finished_at })
  const at = "2026-01-01T00:00:00Z"
  expect([told("paused", "pause"), told("cancelled", "cancel", at), told("succeeded", "run", at)]).toEqual([
    null,
    null,
    null,
  ])
  expect(told("starting", "cancel")).toBe("Is being cancelled")
  expect(told("queued", "pause")).toBe("Is to pause")
  expect(told("paused", "run")).toBe("Is to go on")
  expect(told("succeeded", "pause", at)).toBe("Was to pause, and ended before that")
  const failure = { cause: "disk_full", message: "no space", rank: null }
  expect(whyHere({ state: "failed", intent: "cancel", finished_at: at, failure } as Job)).toBe(
    "Was to be cancelled, and ended before that · Disk full: no space",
  )
})

test("devices are told in few words, in every form that a spec takes", () => {
  expect(devicesInWords({ device: "cuda:0,cuda:1", nodes: 1 })).toBe("cuda:0,1")
  expect(devicesInWords({ device: "cpu", nproc_per_node: 4 })).toBe("4 × CPU")
  expect(devicesInWords({ device: "cuda:0", nodes: 2 })).toBe("cuda:0 × 2 hosts")
  expect(devicesInWords({ device: "auto", host: "atlas" })).toBe("auto on atlas")
  expect(devicesInWords({ device: { count: 2, min_memory_gb: 40, name: "A100", host: "atlas" } })).toBe(
    "any 2 A100 GPUs ≥ 40 GB on atlas",
  )
  expect(devicesInWords({ device: 7 })).toBe("?")
})

test("a program of one's own is told by its file or module in the model's place", () => {
  expect(trainingInWords({ train: { recipe: "script", model: "", options: { module: "my.train" } } })).toEqual({
    recipe: "script",
    model: "my.train",
    data: "",
  })
  expect(trainingInWords({ train: null })).toEqual({ recipe: "", model: "", data: "" })
})
