/** The columns of the table of jobs, after the one that selects. */
import { createColumnHelper, metaHelper, tableFeatures } from "@tanstack/react-table"
import { Link } from "wouter"

import type { Job } from "../api/types"
import { devicesInWords, trainingInWords } from "../format/devices"
import { useNow } from "../format/now"
import { dateTime, duration, secondsBetween } from "../format/times"
import { JobProgress } from "../parts/JobProgress"
import { StateBadge } from "../parts/StateBadge"
import { useSettings } from "../settings/settings"
import classes from "./Jobs.module.css"
import { MetricTrail } from "./MetricTrail"
import { Reason } from "./Reason"

interface Meta {
  /** What the service orders by, where it can. */
  sort?: "id" | "name" | "priority" | "created_at"
  /** Place of the cell in the grid of a row. */
  area: string
}

export const features = tableFeatures({ columnMeta: metaHelper<Meta>() })
export type JobTableFeatures = typeof features

const helper = createColumnHelper<JobTableFeatures, Job>()

export const columns = helper.columns([
  helper.accessor("id", { header: "Job", meta: { sort: "id", area: "id" }, cell: ({ row }) => `#${row.original.id}` }),
  helper.accessor("state", {
    header: "State",
    meta: { area: "state" },
    cell: ({ row }) => <StateBadge state={row.original.state} />,
  }),
  helper.accessor("name", {
    header: "Name",
    meta: { sort: "name", area: "name" },
    cell: ({ row }) => <Name job={row.original} />,
  }),
  helper.display({
    id: "training",
    header: "Model",
    meta: { area: "training" },
    cell: ({ row }) => <Training job={row.original} />,
  }),
  helper.display({
    id: "devices",
    header: "Devices",
    meta: { area: "devices" },
    cell: ({ row }) => {
      const words = devicesInWords(row.original.spec)
      return (
        <span className={classes.cut} title={words}>
          {words}
        </span>
      )
    },
  }),
  helper.display({
    id: "progress",
    header: "Progress",
    meta: { area: "progress" },
    cell: ({ row }) => <JobProgress job={row.original} />,
  }),
  helper.display({
    id: "metric",
    header: "Last metric",
    meta: { area: "metric" },
    cell: ({ row }) => <MetricTrail job={row.original} />,
  }),
  helper.display({
    id: "reason",
    header: "Waits or failed",
    meta: { area: "reason" },
    cell: ({ row }) => <Reason job={row.original} />,
  }),
  helper.accessor("user", {
    header: "Owner",
    meta: { area: "user" },
    cell: ({ row }) => (
      <span className={classes.cut} title={row.original.user ?? undefined}>
        {row.original.user ?? "–"}
      </span>
    ),
  }),
  helper.accessor("priority", {
    header: "Priority",
    meta: { sort: "priority", area: "priority" },
    cell: ({ row }) => row.original.priority,
  }),
  helper.accessor("created_at", {
    header: "Age",
    meta: { sort: "created_at", area: "age" },
    cell: ({ row }) => <Age at={row.original.created_at} />,
  }),
])

function Name({ job }: { job: Job }) {
  const labels = Object.entries(job.labels).map(([key, value]) => `${key}=${value}`)
  return (
    <>
      <Link href={`/jobs/${job.id}`} className={`${classes.link} ${classes.cut}`} title={job.name}>
        {job.name}
      </Link>
      {labels.length > 0 && (
        <span className={`${classes.second} ${classes.cut}`} title={labels.join(", ")}>
          {labels.join(", ")}
        </span>
      )}
    </>
  )
}

function Training({ job }: { job: Job }) {
  const { recipe, model, data } = trainingInWords(job.spec)
  return (
    <>
      <span className={classes.cut} title={data ? `${model} on ${data}` : model}>
        {model}
      </span>
      <span className={`${classes.second} ${classes.cut}`}>{recipe}</span>
    </>
  )
}

const UNITS_S = [86_400, 3_600, 60]

function Age({ at }: { at: string }) {
  const { timeZone } = useSettings()
  const passed_s = secondsBetween(at, useNow(5_000))
  const unit_s = UNITS_S.find((size) => passed_s >= size) ?? 1
  return (
    <time className={classes.cut} dateTime={at} title={dateTime(at, timeZone)}>
      {duration(Math.floor(passed_s / unit_s) * unit_s)}
    </time>
  )
}
