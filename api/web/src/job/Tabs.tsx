/** The tabs of a job: each is a path of its own, and is loaded when it is first shown. */
import { Anchor, Text } from "@mantine/core"
import { lazy, Suspense, type ComponentType } from "react"
import { Link } from "wouter"

import type { Job } from "../api/types"
import { Empty } from "../parts/Empty"
import { Loading } from "../parts/Loading"
import classes from "./Tabs.module.css"
import { OverviewTab } from "./overview/OverviewTab"

interface Tab {
  /** Last part of its path; empty for the one that `/jobs/7` itself shows. */
  path: string
  title: string
  Content: ComponentType<{ job: Job }>
}

const TABS: readonly Tab[] = [
  { path: "", title: "Overview", Content: OverviewTab },
  { path: "metrics", title: "Metrics", Content: lazy(() => import("./metrics/MetricsTab")) },
  { path: "logs", title: "Logs", Content: lazy(() => import("./logs/LogsTab")) },
  { path: "checkpoints", title: "Checkpoints", Content: lazy(() => import("./checkpoints/CheckpointsTab")) },
  { path: "timeline", title: "Timeline", Content: lazy(() => import("./timeline/TimelineTab")) },
  { path: "spec", title: "Spec", Content: lazy(() => import("./spec/SpecTab")) },
]

export function Tabs({ job, tab }: { job: Job; tab: string | undefined }) {
  const shown = TABS.find(({ path }) => path === (tab ?? ""))
  return (
    <>
      <nav aria-label="Parts of the job" className={classes.tabs}>
        {TABS.map(({ path, title }) => (
          <Link
            key={path}
            href={path === "" ? `/jobs/${job.id}` : `/jobs/${job.id}/${path}`}
            className={classes.tab}
            aria-current={path === shown?.path ? "page" : undefined}
          >
            {title}
          </Link>
        ))}
      </nav>
      {shown ? (
        <Suspense fallback={<Loading what={shown.title} />}>
          <shown.Content job={job} />
        </Suspense>
      ) : (
        <Empty title="A job has no such tab">
          <Text size="sm">
            <Anchor component={Link} href={`/jobs/${job.id}`}>
              Overview of the job
            </Anchor>
          </Text>
        </Empty>
      )}
    </>
  )
}
