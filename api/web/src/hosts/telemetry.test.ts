import { expect, test } from "vitest"

import { aDevice, aSample } from "./examples"
import { newest, sampleOf } from "./telemetry"

test("of several samples of a GPU the newest counts, in whatever order they come", () => {
  const late = aSample({ at: "2026-03-01T12:30:00Z", utilisation: 90 })
  const samples = newest([late, aSample({ at: "2026-03-01T12:29:00Z" }), aSample({ device: "cuda:1", utilisation: 1 })])
  expect(sampleOf(aDevice({ name: "cuda:0" }), samples)).toBe(late)
  expect(sampleOf(aDevice({ name: "cuda:1" }), samples)?.utilisation).toBe(1)
})

test("a GPU is found by its UUID, whatever its number is now", () => {
  const samples = newest([aSample({ device: "cuda:1", uuid: "GPU-1" })])
  expect(sampleOf(aDevice({ name: "cuda:0", uuid: "GPU-1" }), samples)?.device).toBe("cuda:1")
  expect(sampleOf(aDevice({ name: "cuda:1", uuid: "GPU-2" }), samples)).toBeUndefined()
})
