import { expect, test } from "vitest"

import { aDevice, aHost } from "./examples"
import { devicesInWords, deviceStateOf, hasTelemetry, stateOf } from "./hostState"

test("a host that is silent is out of contact, drained or not", () => {
  expect(stateOf(aHost({ alive: false, drained_at: "2026-03-01T12:00:00Z", closed: "out of contact" }))).toBe("silent")
})

test("a host that is short of disk space is closed, and one that nothing speaks against is open", () => {
  expect(stateOf(aHost({ closed: "short of disk space" }))).toBe("closed")
  expect(stateOf(aHost({}))).toBe("open")
  expect(stateOf(aHost({ drained_at: "2026-03-01T12:00:00Z", closed: "drained" }))).toBe("drained")
})

test("a device in quarantine that a run still has is held", () => {
  const quarantined = { quarantined_at: "2026-03-01T12:00:00Z" }
  expect(deviceStateOf(aDevice({ ...quarantined, held_by: { job_id: 7, attempt: 1 } }))).toBe("held")
  expect(deviceStateOf(aDevice(quarantined))).toBe("quarantined")
})

test("GPUs and CPU slots are counted apart", () => {
  const devices = [
    aDevice({ name: "cuda:0", held_by: { job_id: 7, attempt: 1 } }),
    aDevice({ name: "cuda:1" }),
    aDevice({ name: "cpu:0", kind: "cpu" }),
  ]
  expect(devicesInWords(devices)).toBe("2 GPUs: 1 held, 1 free; 1 CPU slot: 1 free")
  expect(devicesInWords([])).toBe("no devices")
})

test("only a real GPU is said to lack telemetry", () => {
  expect(hasTelemetry(aDevice({}))).toBe(true)
  expect(hasTelemetry(aDevice({ simulated: true }))).toBe(false)
  expect(hasTelemetry(aDevice({ kind: "cpu" }))).toBe(false)
})
