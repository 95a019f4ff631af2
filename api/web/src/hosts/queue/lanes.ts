/** Who has which devices now, as lanes of the plan: devices of a host that one job holds are one lane. */
import type { Host } from "../../api/types"
import { inOrder, namesInShort } from "../deviceNames"

export interface Lane {
  jobId: number
  /** Names of the devices, short: `cuda:0–3, cuda:6`. */
  devices: string
}

interface HostLanes {
  host: Host
  lanes: Lane[]
}

/** The hosts on which something runs, each with its lanes, in the order of the devices. */
export function lanesOf(hosts: readonly Host[]): HostLanes[] {
  return hosts.map((host) => ({ host, lanes: lanesOn(host) })).filter(({ lanes }) => lanes.length > 0)
}

function lanesOn(host: Host): Lane[] {
  const held = new Map<number, string[]>()
  for (const { held_by: holder, name } of inOrder(host.devices)) {
    if (holder === null) continue
    const names = held.get(holder.job_id)
    if (names) names.push(name)
    else held.set(holder.job_id, [name])
  }
  return [...held].map(([jobId, names]) => ({ jobId, devices: namesInShort(names) }))
}
