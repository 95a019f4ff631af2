/** The last few warnings and errors that a job has logged. */
import { Anchor, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { Link } from "wouter"

import { api, data } from "../../api/client"
import { keys } from "../../api/queries"
import type { JobEvent } from "../../api/types"
import { Ago } from "../../parts/Time"
import { Section } from "../Section"
import classes from "./Warnings.module.css"

const LOOKED_AT = 100
const MOST = 5

export function Warnings({ jobId }: { jobId: number }) {
  const { data: warnings } = useQuery({
    queryKey: [...keys.events(jobId), "warnings"],
    queryFn: async ({ signal }) => {
      const params = {
        path: { job_id: jobId },
        query: { kind: ["log"], sort: "-id" as const, limit: LOOKED_AT },
      }
      return (await data(api.GET("/jobs/{job_id}/events", { params, signal }))).items.filter(isWarning).slice(0, MOST)
    },
  })
  if (!warnings || warnings.length === 0) return null
  return (
    <Section
      title="Last warnings"
      aside={
        <Anchor component={Link} href={`/jobs/${jobId}/timeline`} size="sm">
          Timeline
        </Anchor>
      }
    >
      <ul className={classes.warnings}>
        {warnings.map(({ id, at, attempt, detail }) => (
          <li key={id}>
            <Text size="xs" c="dimmed">
              {String(detail.level)} · attempt {attempt} · <Ago at={at} />
            </Text>
            <Text size="sm" className={classes.message}>
              {String(detail.message)}
            </Text>
          </li>
        ))}
      </ul>
    </Section>
  )
}

function isWarning({ detail }: JobEvent): boolean {
  return (detail.level === "warning" || detail.level === "error") && typeof detail.message === "string"
}
