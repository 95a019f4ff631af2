/** The latest value of each metric. */
import { Anchor } from "@mantine/core"
import { Link } from "wouter"

import type { Job, Progress } from "../../api/types"
import { figure } from "../../format/numbers"
import { Section } from "../Section"
import classes from "./Values.module.css"

export function Values({ job, progress }: { job: Job; progress: Progress }) {
  const values = Object.entries(progress.values).sort(([one], [other]) => one.localeCompare(other))
  if (values.length === 0) return null
  return (
    <Section
      title="Latest values"
      aside={
        <Anchor component={Link} href={`/jobs/${job.id}/metrics`} size="sm">
          Curves
        </Anchor>
      }
    >
      <dl className={classes.values}>
        {values.map(([name, value]) => (
          <div key={name} className={classes.value}>
            <dt>{name}</dt>
            <dd>{figure(value, "not finite")}</dd>
          </div>
        ))}
      </dl>
    </Section>
  )
}
