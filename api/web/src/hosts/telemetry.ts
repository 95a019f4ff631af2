/** What a host's GPUs did last. */
import { queryOptions } from "@tanstack/react-query"

import { api, data } from "../api/client"
import { keys } from "../api/queries"
import type { Device, DeviceSample, Host } from "../api/types"

const POLL_MS = 10_000

/** How far back the last figure may lie: several of the longest stretches that services keep one figure of. */
const BACK_MS = 15 * 60_000

/** The newest sample of each GPU; `from` is reckoned from the host's last heartbeat, which is on the service's clock. */
export function telemetryQuery(host: Pick<Host, "name" | "heartbeat_at">) {
  return queryOptions({
    queryKey: [...keys.hosts, host.name, "telemetry"],
    queryFn: async ({ signal }) => {
      const from = new Date(new Date(host.heartbeat_at).getTime() - BACK_MS).toISOString()
      const params = { path: { name: host.name }, query: { from, size: 1000 } }
      return newest((await data(api.GET("/hosts/{name}/telemetry", { params, signal }))).items)
    },
    refetchInterval: POLL_MS,
  })
}

/** Of each GPU the last sample, by `nameOf`. */
export function newest(samples: readonly DeviceSample[]): Record<string, DeviceSample> {
  const found: Record<string, DeviceSample> = {}
  for (const sample of samples) {
    const name = nameOf(sample.uuid, sample.device)
    const before = found[name]
    if (before === undefined || new Date(before.at) <= new Date(sample.at)) found[name] = sample
  }
  return found
}

export function sampleOf(device: Device, samples: Record<string, DeviceSample> | undefined): DeviceSample | undefined {
  return samples?.[nameOf(device.uuid, device.name)]
}

/** A physical GPU keeps its UUID whatever number its worker gives it. */
function nameOf(uuid: string | null, device: string): string {
  return uuid ?? device
}
