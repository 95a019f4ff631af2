import { expect, test } from "vitest"

import { headsFor } from "./states"
import type { Job } from "./types"
import { verbsFor } from "./verbs"

function offered(state: Job["state"], intent: Job["intent"], cause?: string) {
  const failure = cause === undefined ? null : ({ cause, message: "" } as NonNullable<Job["failure"]>)
  return verbsFor({ state, intent, failure })
}

test("a job is offered the verbs that mean something for it", () => {
  expect(offered("running", "run")).toEqual(["pause", "cancel"])
  expect(offered("running", "pause")).toEqual(["resume", "cancel"])
  expect(offered("running", "cancel")).toEqual([])
  expect(offered("paused", "pause")).toEqual(["resume", "cancel"])
  expect(offered("succeeded", "run")).toEqual([])
})

test("a failed job is retried, but not one that was to end or has spent its time", () => {
  expect(offered("failed", "run", "exception")).toEqual(["retry"])
  expect(offered("failed", "pause", "exception")).toEqual(["retry"])
  expect(offered("failed", "cancel", "exception")).toEqual([])
  expect(offered("failed", "run", "time_limit")).toEqual([])
})

test("a job heads for what it is told, unless it is over", () => {
  expect(headsFor({ state: "running", intent: "pause" })).toBe("paused")
  expect(headsFor({ state: "running", intent: "cancel" })).toBe("cancelled")
  expect(headsFor({ state: "queued", intent: "run" })).toBe("queued")
  expect(headsFor({ state: "succeeded", intent: "cancel" })).toBe("succeeded")
})
