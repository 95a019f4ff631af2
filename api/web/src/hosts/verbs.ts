/** What an admin does with hosts and devices; what comes of it is shown at once, and told in a notice. */
import { useMutation, useQueryClient } from "@tanstack/react-query"

import { api, data } from "../api/client"
import { keys } from "../api/queries"
import type { Host } from "../api/types"
import { notices } from "../parts/notices"

interface DrainOrder {
  host: string
  note: string
  /** Whether the jobs there are to save and stop, to go on elsewhere. */
  evict: boolean
}

export interface DeviceName {
  host: string
  device: string
}

export function useDrain() {
  const show = useShowHost()
  return useMutation({
    mutationFn: ({ host, note, evict }: DrainOrder) =>
      data(
        api.POST("/hosts/{name}/drain", {
          params: { path: { name: host } },
          body: { note: note.trim() === "" ? null : note.trim(), evict },
        }),
      ),
    onSuccess: (host) => {
      show(host)
      notices.done(`${host.name} gets no new jobs until it is taken back.`)
    },
  })
}

export function useTakeBack() {
  const show = useShowHost()
  return useMutation({
    mutationFn: (host: string) => data(api.POST("/hosts/{name}/undrain", { params: { path: { name: host } } })),
    onSuccess: (host) => {
      show(host)
      notices.done(`${host.name} is taken back.`)
    },
    onError: (error, host) => notices.failed(`${host} was not taken back: ${error.message}`),
  })
}

export function useRemove() {
  const client = useQueryClient()
  return useMutation({
    mutationFn: async (host: string) => {
      await api.DELETE("/hosts/{name}", { params: { path: { name: host } } })
    },
    onSuccess: (_, host) => {
      client.setQueryData<Host[]>(keys.hosts, (hosts) => hosts?.filter(({ name }) => name !== host))
      notices.done(`${host} is removed.`)
    },
  })
}

export function useQuarantine() {
  const show = useShowHost()
  return useMutation({
    mutationFn: ({ host, device, reason }: DeviceName & { reason: string }) =>
      data(
        api.POST("/hosts/{name}/devices/{device}/quarantine", {
          params: { path: { name: host, device } },
          body: { reason: reason.trim() },
        }),
      ),
    onSuccess: (host, { device }) => {
      show(host)
      notices.done(`${device} of ${host.name} is in quarantine.`)
    },
  })
}

export function useRelease() {
  const show = useShowHost()
  return useMutation({
    mutationFn: ({ host, device }: DeviceName) =>
      data(api.POST("/hosts/{name}/devices/{device}/release", { params: { path: { name: host, device } } })),
    onSuccess: (host, { device }) => {
      show(host)
      notices.done(`${device} of ${host.name} is handed out again.`)
    },
    onError: (error, { host, device }) => notices.failed(`${device} of ${host} was not released: ${error.message}`),
  })
}

/** Put what a verb was answered with in place of what is shown of that host. */
function useShowHost(): (host: Host) => void {
  const client = useQueryClient()
  return (host) => {
    client.setQueryData<Host[]>(keys.hosts, (hosts) => hosts?.map((each) => (each.name === host.name ? host : each)))
  }
}
