/** One host: whether it takes jobs, what it has, what runs there, and what an admin may do with it. */
import { Button, Group, Title } from "@mantine/core"
import { useInViewport } from "@mantine/hooks"
import { useQuery } from "@tanstack/react-query"
import { memo, useCallback } from "react"
import { Link } from "wouter"

import type { Host } from "../api/types"
import { bytes } from "../format/numbers"
import { Ago, At } from "../parts/Time"
import { useRights } from "../session/rights"
import type { AskVerb } from "./Dialogs"
import { DeviceTile } from "./DeviceTile"
import classes from "./HostCard.module.css"
import { devicesInWords, hasTelemetry, HOST_STATES, stateOf } from "./hostState"
import type { RunningJob } from "./runningJobs"
import { sampleOf, telemetryQuery } from "./telemetry"
import { tilesOf } from "./tiles"
import { useTakeBack } from "./verbs"

interface HostCardProps {
  host: Host
  jobs: Record<number, RunningJob> | undefined
  /** Whether the address points at it. */
  isTarget: boolean
  onAsk: (verb: AskVerb) => void
  onRelease: (host: string, device: string) => void
}

export const HostCard = memo(function HostCard({ host, jobs, isTarget, onAsk, onRelease }: HostCardProps) {
  const { isAdmin } = useRights()
  const { ref, inViewport } = useInViewport()
  const isTold = host.alive && host.devices.some(hasTelemetry)
  const telemetry = useQuery({ ...telemetryQuery(host), enabled: isTold && inViewport })
  const quarantine = useCallback((host: string, device: string) => onAsk({ verb: "quarantine", host, device }), [onAsk])
  const { devices, freeSlots } = tilesOf(host.devices)
  return (
    <section
      ref={ref}
      className={classes.card}
      aria-labelledby={headingId(host.name)}
      data-state={stateOf(host)}
      data-target={isTarget || undefined}
    >
      <Group justify="space-between" align="start" gap="xs">
        <Group gap="xs">
          <Title order={2} size="h4" id={headingId(host.name)} tabIndex={-1}>
            {host.name}
          </Title>
          <span className={classes.state}>{HOST_STATES[stateOf(host)]}</span>
        </Group>
        {isAdmin && <HostVerbs host={host} onAsk={onAsk} />}
      </Group>
      <WhyClosed host={host} />
      <Facts host={host} />
      <Runs host={host} jobs={jobs} />
      <ul className={classes.devices} aria-label={`Devices of ${host.name}`}>
        {devices.map((device) => (
          <DeviceTile
            key={device.name}
            host={host.name}
            device={device}
            job={device.held_by ? jobs?.[device.held_by.job_id] : undefined}
            sample={telemetry.data && isTold ? (sampleOf(device, telemetry.data) ?? null) : undefined}
            onQuarantine={isAdmin ? quarantine : undefined}
            onRelease={isAdmin ? onRelease : undefined}
          />
        ))}
      </ul>
      {freeSlots && <p className={classes.slots}>{freeSlots}</p>}
    </section>
  )
})

/** A name alone may be the id of another element of the page, and one with a space could not be referred to. */
export function headingId(name: string): string {
  return `host-${encodeURIComponent(name)}`
}

function HostVerbs({ host, onAsk }: { host: Host; onAsk: (verb: AskVerb) => void }) {
  const takeBack = useTakeBack()
  const isDrained = host.drained_at !== null
  return (
    <Group gap={6}>
      <Button
        variant="default"
        size="compact-sm"
        aria-label={`${isDrained ? "Change the drain of" : "Drain"} ${host.name}`}
        onClick={() => onAsk({ verb: "drain", host: host.name })}
      >
        {isDrained ? "Change drain…" : "Drain…"}
      </Button>
      {isDrained && (
        <Button
          variant="default"
          size="compact-sm"
          aria-label={`Take ${host.name} back`}
          loading={takeBack.isPending}
          onClick={() => takeBack.mutate(host.name)}
        >
          Take back
        </Button>
      )}
      <Button
        variant="default"
        size="compact-sm"
        aria-label={`Remove ${host.name}`}
        onClick={() => onAsk({ verb: "remove", host: host.name })}
      >
        Remove…
      </Button>
    </Group>
  )
}

function WhyClosed({ host }: { host: Host }) {
  if (host.closed === null) return null
  return (
    <p className={classes.closed}>
      Gets no new jobs: it is {host.closed}
      {host.drained_at !== null && (
        <>
          {" "}
          (since <At at={host.drained_at} />)
        </>
      )}
    </p>
  )
}

function Facts({ host }: { host: Host }) {
  return (
    <dl className={classes.facts}>
      <div>
        <dt>Last heartbeat</dt>
        <dd>
          <Ago at={host.heartbeat_at} />
        </dd>
      </div>
      <div>
        <dt>Devices</dt>
        <dd>{devicesInWords(host.devices)}</dd>
      </div>
      {host.free_bytes !== null && (
        <div>
          <dt>Disk free</dt>
          <dd>{bytes(host.free_bytes)}</dd>
        </div>
      )}
      {host.address !== null && (
        <div>
          <dt>Address</dt>
          <dd>{host.address}</dd>
        </div>
      )}
    </dl>
  )
}

function Runs({ host, jobs }: { host: Host; jobs: Record<number, RunningJob> | undefined }) {
  if (host.running.length === 0) return null
  return (
    <p className={classes.runs}>
      <span className={classes.dim}>Runs here: </span>
      {host.running.map(({ job_id: id, attempt }, index) => (
        <span key={`${id} ${attempt}`}>
          {index > 0 && ", "}
          <Link href={`/jobs/${id}`}>
            #{id}
            {jobs?.[id] && ` ${jobs[id].name}`}
          </Link>
          {attempt > 1 && <span className={classes.dim}> attempt {attempt}</span>}
        </span>
      ))}
    </p>
  )
}
