/** A host, a device and a sample for the tests, each with what a test changes of it. */
import type { Device, DeviceSample, Host } from "../api/types"

export function aHost(changes: Partial<Host>): Host {
  return {
    name: "alpha",
    alive: true,
    closed: null,
    registered_at: "2026-03-01T09:00:00Z",
    heartbeat_at: "2026-03-01T12:30:00Z",
    drained_at: null,
    drain_note: null,
    address: "10.0.0.1",
    free_bytes: 2 ** 40,
    running: [],
    devices: [],
    ...changes,
  }
}

export function aDevice(changes: Partial<Device>): Device {
  return {
    name: "cuda:0",
    driver_index: null,
    uuid: null,
    kind: "cuda",
    model: "NVIDIA H200",
    simulated: false,
    memory_bytes: 150e9,
    held_by: null,
    losses: 0,
    quarantined_at: null,
    quarantine_reason: null,
    ...changes,
  }
}

export function aSample(changes: Partial<DeviceSample>): DeviceSample {
  return {
    host: "alpha",
    device: "cuda:0",
    uuid: null,
    at: "2026-03-01T12:29:00Z",
    samples: 6,
    utilisation: 80,
    memory_bytes: 75e9,
    temperature_c: 61,
    power_w: 310,
    ...changes,
  }
}
