/** The facts of a job that its overview lists. */
import { Anchor } from "@mantine/core"
import { Link } from "wouter"

import type { Attempt, Job } from "../../api/types"
import { devicesInWords, trainingInWords } from "../../format/devices"
import { count } from "../../format/numbers"
import { Ago, At, Lasted } from "../../parts/Time"
import type { Fact } from "../Facts"
import { Placements } from "../timeline/Placements"

export function factsOf(job: Job, attempts: readonly Attempt[]): Fact[] {
  const { recipe, model, data } = trainingInWords(job.spec)
  const newest = attempts.find(({ number }) => number === job.attempt)
  const { progress } = job
  return [
    fact("Recipe", recipe),
    fact("Model", model),
    fact("Data", data),
    fact("Devices asked for", devicesInWords(job.spec)),
    fact(newest?.ended_at ? "Ran on" : "Runs on", newest && <Placements placements={newest.placements} />),
    fact("Ranks", job.world_size),
    fact("Global batch", progress?.batch && batchInWords(progress)),
    fact(
      "Epoch",
      progress?.epoch && `${count(progress.epoch)}${progress.epochs ? ` of ${count(progress.epochs)}` : ""}`,
    ),
    fact(
      "Step",
      progress?.step && `${count(progress.step)}${progress.total_steps ? ` of ${count(progress.total_steps)}` : ""}`,
    ),
    fact(
      "Attempts",
      attempts.length > 0 &&
        `${count(attempts.length)} (${count(job.retries)} of ${count(job.max_retries)} retries spent)`,
    ),
    fact("Priority", `${job.priority}${job.spec.preemptible === true ? ", preemptible" : ""}`),
    fact("Owner", job.user),
    fact("Labels", labelsInWords(job.labels)),
    fact("Cloned or begun from", job.parent_id && <JobLink id={job.parent_id} />),
    fact("Submitted", <Ago at={job.created_at} />),
    fact("Started", job.started_at && <At at={job.started_at} />),
    fact("Ended", job.finished_at && <At at={job.finished_at} />),
    fact("Since its start", job.started_at && <Lasted from={job.started_at} to={job.finished_at} />),
  ].filter((each) => each !== null)
}

function fact(name: string, value: Fact["value"]): Fact | null {
  return value === null || value === undefined || value === "" || value === false || value === 0
    ? null
    : { name, value }
}

function batchInWords({ batch, batch_per_rank, accumulate }: NonNullable<Job["progress"]>): string {
  const each = batch_per_rank ? `, ${count(batch_per_rank)} on each rank` : ""
  const steps = accumulate && accumulate > 1 ? `, ${count(accumulate)} to a step` : ""
  return `${count(batch ?? 0)}${each}${steps}`
}

function labelsInWords(labels: Job["labels"]): string {
  return Object.entries(labels)
    .map(([key, value]) => (value === "" ? key : `${key}=${value}`))
    .join(", ")
}

function JobLink({ id }: { id: number }) {
  return (
    <Anchor component={Link} href={`/jobs/${id}`} size="sm" underline="always">
      job {id}
    </Anchor>
  )
}
