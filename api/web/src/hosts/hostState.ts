/** What a host is worth to new jobs, in a few words to show and to filter by. */
import type { Device, Host } from "../api/types"
import { count } from "../format/numbers"

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

type DeviceState = "free" | "held" | "quarantined"

/** One that was put into quarantine while a run has it is still held by that. */
export function deviceStateOf(device: Device): DeviceState {
  if (device.held_by !== null) return "held"
  return device.quarantined_at === null ? "free" : "quarantined"
}

/** `8 GPUs: 7 held, 1 free; 64 CPU slots: 64 free`: a free slot says nothing of the GPUs beside it. */
export function devicesInWords(devices: readonly Device[]): string {
  const slots = devices.filter(({ kind }) => kind === "cpu")
  const others = devices.filter(({ kind }) => kind !== "cpu")
  const parts = [inWords(others, "GPU"), inWords(slots, "CPU slot")].filter((part) => part !== null)
  return parts.length === 0 ? "no devices" : parts.join("; ")
}

function inWords(devices: readonly Device[], what: string): string | null {
  if (devices.length === 0) return null
  const counts: Record<DeviceState, number> = { held: 0, free: 0, quarantined: 0 }
  for (const device of devices) counts[deviceStateOf(device)] += 1
  const states = (["held", "free", "quarantined"] as const).filter((state) => counts[state] > 0)
  const each = states.map((state) => `${count(counts[state])} ${state}`).join(", ")
  return `${count(devices.length)} ${what}${devices.length === 1 ? "" : "s"}: ${each}`
}

/** Whether its driver tells what it does: a CPU slot and a simulated GPU have none that could. */
export function hasTelemetry(device: Device): boolean {
  return device.kind === "cuda" && !device.simulated
}
