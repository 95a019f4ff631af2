/** What a host is worth to new jobs, in a few words to show and to filter by. */
import type { Device, Host } from "../api/types"

export const HOST_STATES = {
  open: "Takes jobs",
  drained: "Drained",
  silent: "Out of contact",
  closed: "Closed",
} as const

export type HostState = keyof typeof HOST_STATES

/** By the same order in which the service says why a host is closed: what is out of contact may be drained as well. */
export function stateOf(host: Host): HostState {
  if (!host.alive) return "silent"
  if (host.drained_at !== null) return "drained"
  return host.closed === null ? "open" : "closed"
}

export type DeviceState = "free" | "held" | "quarantined"

/** One that was put into quarantine while a run has it is still held by that. */
export function deviceStateOf(device: Device): DeviceState {
  if (device.held_by !== null) return "held"
  return device.quarantined_at === null ? "free" : "quarantined"
}

export type DeviceCounts = Record<DeviceState, number>

export function countDevices(devices: readonly Device[]): DeviceCounts {
  const counts: DeviceCounts = { free: 0, held: 0, quarantined: 0 }
  for (const device of devices) counts[deviceStateOf(device)] += 1
  return counts
}

/** `2 held, 5 free, 1 quarantined`; what there is none of is left out. */
export function countsInWords(counts: DeviceCounts): string {
  const parts = (["held", "free", "quarantined"] as const).filter((state) => counts[state] > 0)
  return parts.length === 0 ? "no devices" : parts.map((state) => `${counts[state]} ${state}`).join(", ")
}

/** Whether its driver tells what it does: a CPU slot and a simulated GPU have none that could. */
export function hasTelemetry(device: Device): boolean {
  return device.kind === "cuda" && !device.simulated
}
