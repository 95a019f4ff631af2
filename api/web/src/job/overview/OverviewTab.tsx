/** What matters most of a job at one look: what it waits for or why it failed, its values, the facts, its warnings. */
import { useQuery } from "@tanstack/react-query"

import { attemptsQuery } from "../../api/queries"
import type { Job } from "../../api/types"
import { Facts } from "../Facts"
import { FailurePanel } from "../failure/FailurePanel"
import { Section } from "../Section"
import { factsOf } from "./factsOf"
import { Values } from "./Values"
import { Waiting } from "./Waiting"
import { Warnings } from "./Warnings"

export function OverviewTab({ job }: { job: Job }) {
  const attempts = useQuery(attemptsQuery(job.id)).data ?? []
  // A failed attempt stays of interest while a later one runs, and no more once that has succeeded.
  const failure = job.state === "succeeded" || job.state === "cancelled" ? null : job.failure
  const failed = attempts.findLast((attempt) => attempt.failure !== null)
  return (
    <>
      {job.state === "queued" && <Waiting job={job} />}
      {failure && (
        <FailurePanel jobId={job.id} failure={failure} attempt={failed?.number} isFinal={job.state === "failed"} />
      )}
      {job.progress && <Values job={job} progress={job.progress} />}
      <Warnings jobId={job.id} />
      <Section title="Facts">
        <Facts facts={factsOf(job, attempts)} />
      </Section>
    </>
  )
}
