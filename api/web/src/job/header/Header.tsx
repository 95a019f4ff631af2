/** What stands above every tab of a job: its name and state, what can be done with it, and how far it is. */
import { Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"

import { attemptsQuery } from "../../api/queries"
import type { Job } from "../../api/types"
import { devicesInWords, trainingInWords } from "../../format/devices"
import { whyHere } from "../../format/reasons"
import { JobProgress } from "../../parts/JobProgress"
import { PageTitle } from "../../parts/PageTitle"
import { StateBadge } from "../../parts/StateBadge"
import classes from "./Header.module.css"
import { Verbs } from "./Verbs"

export function Header({ job }: { job: Job }) {
  const { recipe, model, data } = trainingInWords(job.spec)
  const why = whyHere(job)
  const asked = [recipe, model, data, devicesInWords(job.spec), job.user ?? ""].filter((each) => each !== "")
  return (
    <header className={classes.header}>
      <PageTitle
        title={
          <span className={classes.title}>
            <span className={classes.name}>{job.name}</span>
            <span className={classes.id}>#{job.id}</span>
            <StateBadge state={job.state} />
          </span>
        }
        documentTitle={`${job.state} · ${job.name} #${job.id}`}
      >
        <Verbs job={job} />
      </PageTitle>
      <div className={classes.below}>
        <div>
          <Text size="sm" c="dimmed">
            {asked.join(" · ")}
          </Text>
          {/* Read out when it changes: a job that begins, waits or has failed is what one listens for. */}
          <Text size="sm" role="status" className={classes.why}>
            {why}
          </Text>
        </div>
        <Progress job={job} />
      </div>
    </header>
  )
}

function Progress({ job }: { job: Job }) {
  const attempts = useQuery(attemptsQuery(job.id))
  const newest = attempts.data?.find(({ number }) => number === job.attempt)
  const run = newest?.started_at
    ? { started_at: newest.started_at, resumed_step: newest.resumed_step ?? null }
    : undefined
  return <JobProgress job={job} run={run} />
}
