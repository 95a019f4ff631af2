/** Which hosts are shown: what the address asks for, and what that leaves of them. */
import type { Host } from "../api/types"
import { HOST_STATES, stateOf, type HostState } from "./hostState"

interface HostFilter {
  /** Part of the host's name, or of the name or model of a device of it, upper or lower case. */
  text: string
  state: HostState | "quarantine" | null
}

/** States to choose from, in words; `quarantine` is one of its devices'. */
export const FILTER_STATES: Record<NonNullable<HostFilter["state"]>, string> = {
  ...HOST_STATES,
  quarantine: "With a device in quarantine",
}

/** Read a filter from an address; a state that there is not filters nothing. */
export function readFilter(params: URLSearchParams): HostFilter {
  const state = params.get("state")
  return { text: params.get("q") ?? "", state: state !== null && isFilterState(state) ? state : null }
}

export function filterHosts(hosts: readonly Host[], { text, state }: HostFilter): readonly Host[] {
  const words = text.trim().toLowerCase()
  return hosts.filter((host) => hasState(host, state) && (words === "" || isCalled(host, words)))
}

function hasState(host: Host, state: HostFilter["state"]): boolean {
  if (state === null) return true
  if (state === "quarantine") return host.devices.some((device) => device.quarantined_at !== null)
  return stateOf(host) === state
}

function isCalled(host: Host, words: string): boolean {
  if (host.name.toLowerCase().includes(words)) return true
  return host.devices.some(
    ({ name, model }) => name.toLowerCase().includes(words) || (model?.toLowerCase().includes(words) ?? false),
  )
}

function isFilterState(name: string): name is NonNullable<HostFilter["state"]> {
  return Object.hasOwn(FILTER_STATES, name)
}
