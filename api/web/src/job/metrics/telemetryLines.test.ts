import { expect, it } from "vitest"

import type { DeviceSample } from "../../api/types"
import { telemetryLines } from "./telemetryLines"

const START = Date.parse("2026-01-01T00:00:00Z")
const origin = { startedAt: START, stepsPerEpoch: null }

function sample(device: string, minute: number, utilisation: number | null): DeviceSample {
  return {
    host: "alpha",
    device,
    uuid: device,
    at: new Date(START + minute * 60_000).toISOString(),
    samples: 6,
    utilisation,
    memory_bytes: 1,
    temperature_c: null,
    power_w: null,
  }
}

it("has a line for each device, by time since the job's start", () => {
  const samples = [sample("cuda:0", 0, 50), sample("cuda:1", 0, 60), sample("cuda:0", 1, 55), sample("cuda:1", 1, 65)]
  const lines = telemetryLines(samples, "utilisation", "elapsed", origin)
  expect(lines.map(({ label, at, values }) => ({ label, at, values }))).toEqual([
    { label: "alpha cuda:0", at: [0, 60], values: [50, 55] },
    { label: "alpha cuda:1", at: [0, 60], values: [60, 65] },
  ])
})

it("has no line of what a device cannot tell", () => {
  expect(telemetryLines([sample("cuda:0", 0, 50)], "power_w", "elapsed", origin)).toEqual([])
})

it("leaves a gap where the job did not have the device", () => {
  const samples = [0, 1, 2, 10, 11].map((minute) => sample("cuda:0", minute, minute))
  const [line] = telemetryLines(samples, "utilisation", "elapsed", origin)
  expect(line?.values).toEqual([0, 1, 2, null, 10, 11])
})
