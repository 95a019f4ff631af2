/** The plan: who runs on which devices until when, who waits in which order and until when, and who has used how much. */
import { NativeSelect, Text, Title } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useId, type ReactNode } from "react"
import { useSearchParams } from "wouter"

import { hostsQuery } from "../../api/queries"
import { useNow } from "../../format/now"
import { count } from "../../format/numbers"
import { useAddress } from "../../parts/address"
import { ErrorNote } from "../../parts/ErrorNote"
import { Loading } from "../../parts/Loading"
import { runningJobsQuery } from "../runningJobs"
import { usePlanNews } from "../usePlanNews"
import { axisOf, isSpan, SPANS, type Span } from "./axis"
import { endOf, stretchOf } from "./foretold"
import { lineQuery } from "./queries"
import { QueueTable } from "./QueueTable"
import { RunningChart } from "./RunningChart"
import { Use } from "./Use"
import { WaitingChart } from "./WaitingChart"
import classes from "./QueueView.module.css"

/** Bars move by less than can be seen meanwhile. */
const REDRAW_MS = 10_000

export default function QueueView() {
  usePlanNews()
  const now = useNow(REDRAW_MS)
  const hosts = useQuery(hostsQuery())
  const running = useQuery(runningJobsQuery())
  const line = useQuery(lineQuery())
  const [params] = useSearchParams()
  const asked = params.get("span")
  const error = hosts.error ?? running.error ?? line.error
  if (hosts.data === undefined || running.data === undefined || line.data === undefined) {
    if (error === null) return <Loading what="the plan" />
    const again = () => void Promise.all([hosts.refetch(), running.refetch(), line.refetch()])
    return <ErrorNote error={error} onRetry={again} />
  }
  const { first, more, isCounted } = line.data
  const ends = Object.values(running.data).map((job) => endOf(job, now))
  const starts = first.map((job) => stretchOf(job, now)?.from_ms ?? null)
  const span = isSpan(asked) ? asked : "fit"
  const axis = axisOf(
    span,
    now,
    [...ends, ...starts].filter((time) => time !== null),
  )
  return (
    <>
      <SpanChoice span={span} />
      <Text size="xs" c="dimmed" mb="md">
        The upright line is now. Dots stand for an end that is not known.
      </Text>
      <Part title="Running now">
        <RunningChart hosts={hosts.data} jobs={running.data} axis={axis} />
      </Part>
      <Part title="Waiting, in planned order">
        {first.length === 0 ? (
          <Text size="sm">Nothing waits.</Text>
        ) : (
          <>
            <WaitingChart jobs={first} axis={axis} />
            <Title order={3} size="h6" mt="md" mb={4}>
              The same as a table
            </Title>
            <QueueTable jobs={first} />
          </>
        )}
        {more > 0 && (
          <Text size="sm" mt="xs">
            and {isCounted ? "" : "at least "}
            {count(more)} more
          </Text>
        )}
      </Part>
      <Part title="Use of devices">
        <Use />
      </Part>
    </>
  )
}

function SpanChoice({ span }: { span: Span }) {
  const { change } = useAddress()
  return (
    <NativeSelect
      label="Look ahead"
      size="xs"
      w={200}
      mb="md"
      value={span}
      data={Object.entries(SPANS).map(([value, label]) => ({ value, label }))}
      onChange={(event) => {
        const { value } = event.currentTarget
        change({ span: value === "fit" ? null : value })
      }}
    />
  )
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  const id = useId()
  return (
    <section aria-labelledby={id} className={classes.part}>
      <Title order={2} size="h4" id={id} mb="xs">
        {title}
      </Title>
      {children}
    </section>
  )
}
