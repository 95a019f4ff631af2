/** What a queued job waits for, its place in the line, and when it will begin. */
import { Anchor } from "@mantine/core"
import { Link } from "wouter"

import type { Job } from "../../api/types"
import { whyHere } from "../../format/reasons"
import { secondsBetween } from "../../format/times"
import { useNow } from "../../format/now"
import { Ago, At } from "../../parts/Time"
import { Facts, type Fact } from "../Facts"
import { Section } from "../Section"

export function Waiting({ job }: { job: Job }) {
  const now = useNow(5_000)
  const facts: Fact[] = [
    { name: "Reason", value: whyHere(job) },
    { name: "In the line since", value: <Ago at={job.queued_at} /> },
  ]
  if (job.position !== null && job.position !== undefined) {
    facts.push({ name: "Place in the line", value: job.position })
    facts.push({ name: "Starts", value: <Starts at={job.predicted_start ?? null} now={now} /> })
  }
  if (job.not_before && secondsBetween(now, job.not_before) > 0) {
    facts.push({ name: "Rests after a loss until", value: <At at={job.not_before} /> })
  }
  if (job.waits_for.length > 0) facts.push({ name: "In its way", value: <InItsWay job={job} /> })
  return (
    <Section title="Waiting">
      <Facts facts={facts} />
    </Section>
  )
}

function Starts({ at, now }: { at: string | null; now: number }) {
  if (at === null) return "Cannot be foretold"
  return secondsBetween(now, at) < 1 ? "Soon" : <Ago at={at} />
}

function InItsWay({ job }: { job: Job }) {
  return (
    <>
      {job.waits_for.map(({ host, device, job_id }) => (
        <div key={`${host} ${device} ${job_id}`}>
          {device} on {host}:{" "}
          <Anchor component={Link} href={`/jobs/${job_id}`} size="sm" underline="always">
            job {job_id}
          </Anchor>
        </div>
      ))}
    </>
  )
}
