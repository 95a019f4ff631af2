/** The ways to say where a job trains, as `device` of its spec has them. */
import { isObject, type Json } from "../format/json"

export type Way = "auto" | "devices" | "count" | "cpu"

export const WAYS: Record<Way, string> = {
  auto: "one device, any",
  devices: "devices by name",
  count: "a number of GPUs, any",
  cpu: "the CPU",
}

/** What `device` becomes when a way is chosen; undefined for the default. */
export const FIRST: Record<Way, Json | undefined> = {
  auto: undefined,
  devices: "cuda:0",
  count: { count: 1 },
  cpu: "cpu",
}

/**
 * The way that is shown for a device: the one that was chosen, as long as the device can be said in it. So a list is
 * still a list while "cpu" is typed there.
 */
export function wayOf(device: Json | undefined, chosen: Way | null): Way {
  if (isObject(device)) return "count"
  if (device === undefined) return chosen === "devices" ? "devices" : "auto"
  if (chosen === "devices") return "devices"
  if (device === "cpu") return "cpu"
  return device === "auto" ? "auto" : "devices"
}
