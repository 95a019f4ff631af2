/** One job: its header, and below it the tab that the path names. */
import { Anchor, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { Link } from "wouter"

import { ProblemError } from "../api/problems"
import { jobQuery } from "../api/queries"
import type { Job } from "../api/types"
import { Empty } from "../parts/Empty"
import { ErrorNote } from "../parts/ErrorNote"
import { Loading } from "../parts/Loading"
import { PageTitle } from "../parts/PageTitle"
import { Header } from "./header/Header"
import { Tabs } from "./Tabs"

/** A place in the line and its predicted start move with every plan, of which no event tells. */
const WAITING_POLL_MS = 10_000

export default function JobPage({ id, tab }: { id: number; tab: string | undefined }) {
  const job = useQuery({
    ...jobQuery(id),
    refetchInterval: ({ state }) => (state.data?.state === "queued" ? WAITING_POLL_MS : false),
  })
  if (job.data) return <Shown job={job.data} tab={tab} />
  if (job.error instanceof ProblemError && job.error.status === 404) return <NoSuchJob id={id} />
  if (job.error) {
    return (
      <>
        <PageTitle title={`Job ${id}`} documentTitle={`Job ${id}`} />
        <ErrorNote error={job.error} onRetry={() => void job.refetch()} />
      </>
    )
  }
  return <Loading what={`job ${id}`} />
}

function Shown({ job, tab }: { job: Job; tab: string | undefined }) {
  return (
    <>
      <Header job={job} />
      <Tabs job={job} tab={tab} />
    </>
  )
}

function NoSuchJob({ id }: { id: number }) {
  return (
    <>
      <PageTitle title={`Job ${id}`} documentTitle={`No job ${id}`} />
      <Empty title={`There is no job ${id}`}>
        <Text size="sm">The service knows no job of this number.</Text>
        <Anchor component={Link} href="/jobs" size="sm">
          All jobs
        </Anchor>
      </Empty>
    </>
  )
}
