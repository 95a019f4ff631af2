/** All hosts as cards, those that the address filters for, and what admins do with them. */
import { Button, Group, NativeSelect, Text, TextInput } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useCallback, useEffect, useState, useSyncExternalStore } from "react"
import { useSearchParams } from "wouter"

import type { Host } from "../api/types"
import { count } from "../format/numbers"
import { useAction } from "../keys/actions"
import { useAddress } from "../parts/address"
import { Empty } from "../parts/Empty"
import { useRights } from "../session/rights"
import { Dialogs, type AskVerb } from "./Dialogs"
import { FILTER_STATES, filterHosts, readFilter } from "./filter"
import { headingId, HostCard } from "./HostCard"
import classes from "./HostsView.module.css"
import { devicesInWords } from "./hostState"
import { runningJobsQuery } from "./runningJobs"
import { usePlanNews } from "./usePlanNews"
import { useRelease } from "./verbs"

export function HostsView({ hosts }: { hosts: readonly Host[] }) {
  const { isAdmin } = useRights()
  const [params] = useSearchParams()
  usePlanNews()
  const jobs = useQuery(runningJobsQuery())
  const [asked, setAsked] = useState<AskVerb | null>(null)
  const [isAsking, setIsAsking] = useState(false)
  const ask = useCallback((verb: AskVerb) => {
    setAsked(verb)
    setIsAsking(true)
  }, [])
  const { mutate: release } = useRelease()
  const onRelease = useCallback((host: string, device: string) => release({ host, device }), [release])
  const target = useTarget()
  useAction({
    id: "drain a host",
    title: "Drain a host…",
    section: "This page",
    enabled: isAdmin && hosts.length > 0,
    run: () => ask({ verb: "drain", host: null }),
  })
  const shown = filterHosts(hosts, readFilter(params))
  return (
    <>
      <FilterBar hosts={hosts} shown={shown} />
      <div className={classes.cards}>
        {shown.map((host) => (
          <HostCard
            key={host.name}
            host={host}
            jobs={jobs.data}
            isTarget={host.name === target}
            onAsk={ask}
            onRelease={onRelease}
          />
        ))}
      </div>
      <Dialogs asked={asked} opened={isAsking} hosts={hosts} onClose={() => setIsAsking(false)} />
    </>
  )
}

function FilterBar({ hosts, shown }: { hosts: readonly Host[]; shown: readonly Host[] }) {
  const { params, change } = useAddress()
  const { text, state } = readFilter(params)
  const isFiltered = text !== "" || state !== null
  const devices = devicesInWords(shown.flatMap((host) => host.devices))
  return (
    <>
      <Group gap="sm" align="end">
        <TextInput
          label="Find"
          placeholder="Host or model"
          size="xs"
          type="search"
          value={text}
          onChange={(event) => change({ q: event.currentTarget.value })}
        />
        <NativeSelect
          label="State"
          size="xs"
          value={state ?? ""}
          data={[
            { value: "", label: "Any" },
            ...Object.entries(FILTER_STATES).map(([value, label]) => ({ value, label })),
          ]}
          onChange={(event) => change({ state: event.currentTarget.value })}
        />
        <Text size="sm" c="dimmed" role="status">
          {isFiltered && `${count(shown.length)} of `}
          {hosts.length === 1 ? "1 host" : `${count(hosts.length)} hosts`} · {devices}
        </Text>
      </Group>
      {shown.length === 0 && (
        <Empty title="No host is like that">
          <Button variant="default" size="xs" onClick={() => change({ q: null, state: null })}>
            Show all
          </Button>
        </Empty>
      )}
    </>
  )
}

/** The host that the address points at, `/hosts#alpha`: it is scrolled to when the page opens, or the address changes. */
function useTarget(): string {
  const target = useSyncExternalStore(onHashChange, readHash)
  useEffect(() => {
    const heading = target === "" ? null : document.getElementById(headingId(target))
    heading?.scrollIntoView({ block: "start" })
    heading?.focus({ preventScroll: true })
  }, [target])
  return target
}

function onHashChange(listener: () => void): () => void {
  window.addEventListener("hashchange", listener)
  return () => window.removeEventListener("hashchange", listener)
}

function readHash(): string {
  try {
    return decodeURIComponent(window.location.hash.slice(1))
  } catch {
    return ""
  }
}
