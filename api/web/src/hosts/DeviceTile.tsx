/** One device of a host: who has it, what it does, and whether it is handed out. */
import { memo, type ReactNode } from "react"
import { Link } from "wouter"

import type { Device, DeviceSample } from "../api/types"
import { bytes, count, figure, percent } from "../format/numbers"
import { dateTime } from "../format/times"
import { useSettings } from "../settings/settings"
import classes from "./DeviceTile.module.css"
import { deviceStateOf, hasTelemetry } from "./hostState"
import type { RunningJob } from "./runningJobs"

interface DeviceTileProps {
  host: string
  device: Device
  /** Whoever holds it; undefined as long as its name is on its way. */
  job: RunningJob | undefined
  /** `null` where telemetry was read and has nothing of it; undefined where it was not read. */
  sample: DeviceSample | null | undefined
  /** What an admin may do with it; without it, nothing is offered. */
  onQuarantine?: (host: string, device: string) => void
  onRelease?: (host: string, device: string) => void
}

export const DeviceTile = memo(function DeviceTile(props: DeviceTileProps) {
  const { host, device, job, sample, onQuarantine, onRelease } = props
  const { name, model, memory_bytes: memory, driver_index: driverIndex, quarantined_at: quarantinedAt } = device
  const state = deviceStateOf(device)
  const facts = [
    device.simulated ? null : model,
    memory === null ? null : bytes(memory),
    driverIndex === null || name === `cuda:${driverIndex}` ? null : `nvidia-smi ${driverIndex}`,
  ].filter((fact) => fact !== null)
  return (
    <li className={classes.tile} data-state={quarantinedAt === null ? state : "quarantined"}>
      <div className={classes.head}>
        <span className={classes.name} title={device.uuid ?? undefined}>
          {name}
        </span>
        {device.simulated && <span className={classes.mark}>simulated</span>}
        {quarantinedAt !== null && <span className={classes.mark}>quarantined</span>}
        {state === "free" && <span className={classes.free}>free</span>}
      </div>
      {facts.length > 0 && <div className={classes.dim}>{facts.join(" · ")}</div>}
      {device.held_by && <Holder id={device.held_by.job_id} attempt={device.held_by.attempt} job={job} />}
      {sample ? (
        <Use sample={sample} memory={memory} />
      ) : (
        sample === null && hasTelemetry(device) && <div className={classes.dim}>no telemetry lately</div>
      )}
      {quarantinedAt !== null && device.quarantine_reason !== null && (
        <div className={classes.reason}>{device.quarantine_reason}</div>
      )}
      {device.losses > 0 && (
        <div className={classes.dim}>
          {device.losses === 1 ? "last attempt was lost" : `last ${count(device.losses)} attempts were lost`}
        </div>
      )}
      {quarantinedAt === null
        ? onQuarantine && (
            <button
              type="button"
              className={classes.verb}
              aria-label={`Quarantine ${name} of ${host}`}
              onClick={() => onQuarantine(host, name)}
            >
              Quarantine…
            </button>
          )
        : onRelease && (
            <button
              type="button"
              className={classes.verb}
              aria-label={`Release ${name} of ${host}`}
              onClick={() => onRelease(host, name)}
            >
              Release
            </button>
          )}
    </li>
  )
})

function Holder({ id, attempt, job }: { id: number; attempt: number; job: RunningJob | undefined }) {
  return (
    <div className={classes.holder}>
      <Link href={`/jobs/${id}`} title={[job?.name, job?.user, `attempt ${attempt}`].filter(Boolean).join(", ")}>
        #{id}
        {job && ` ${job.name}`}
      </Link>
    </div>
  )
}

/** The newest figures; those that a GPU cannot tell are left out. */
function Use({ sample, memory }: { sample: DeviceSample; memory: number | null }) {
  const { timeZone } = useSettings()
  const { utilisation, memory_bytes: inUse, temperature_c: celsius, power_w: watts } = sample
  return (
    <div className={classes.use} title={`From ${dateTime(sample.at, timeZone)}`}>
      {utilisation !== null && (
        <Share label="busy" share={utilisation / 100}>
          {percent(utilisation / 100)} busy
        </Share>
      )}
      {inUse !== null && (
        <Share label="memory" share={memory ? inUse / memory : 0}>
          {bytes(inUse)}
          {memory !== null && ` of ${bytes(memory)}`}
        </Share>
      )}
      {(celsius !== null || watts !== null) && (
        <div className={classes.dim}>
          {[
            celsius === null ? null : `${figure(Math.round(celsius))} °C`,
            watts === null ? null : `${figure(Math.round(watts))} W`,
          ]
            .filter((fact) => fact !== null)
            .join(" · ")}
        </div>
      )}
    </div>
  )
}

/** Figures as words, with a bar for the eye. */
function Share({ label, share, children }: { label: string; share: number; children: ReactNode }) {
  return (
    <div className={classes.share}>
      <span className={classes.track} aria-hidden data-of={label}>
        <span style={{ width: `${Math.min(Math.max(share, 0), 1) * 100}%` }} />
      </span>
      <span>{children}</span>
    </div>
  )
}
