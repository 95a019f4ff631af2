/** What would come of the job as it stands: where it would run, or what it would wait for, or what is wrong with it. */
import { Anchor, List, Text, Title } from "@mantine/core"
import type { ReactNode } from "react"
import { Link } from "wouter"

import { ProblemError } from "../api/problems"
import type { CandidateHost, FieldError, Plan } from "../api/types"
import { count } from "../format/numbers"
import { ErrorNote } from "../parts/ErrorNote"
import { Ago, At } from "../parts/Time"
import classes from "./newJob.module.css"
import type { DryRun } from "./useDryRun"

interface PlanPanelProps {
  dryRun: DryRun
  /** What keeps the question from being asked; null where it is. */
  lack: string | null
  /** What is wrong with the job as it stands. */
  errors: readonly FieldError[]
  onGoTo: (field: string) => void
}

export function PlanPanel({ dryRun: { answer, isCurrent }, lack, errors, onGoTo }: PlanPanelProps) {
  return (
    <section aria-labelledby="plan-title" aria-busy={lack === null && !isCurrent}>
      <Title order={2} size="h5" id="plan-title" mb={4}>
        Dry run
      </Title>
      {lack !== null ? (
        <Text size="sm" c="dimmed" role="status">
          {lack}
        </Text>
      ) : (
        <div data-stale={isCurrent ? undefined : true} className={classes.answer}>
          <Text size="sm" fw={600} role="status">
            {isCurrent || answer === null ? "" : "Asking again; this was: "}
            {answer === null ? "Asking…" : answer.plan ? verdictOf(answer.plan) : refusalOf(answer.error)}
          </Text>
          {answer?.plan && <PlanDetails plan={answer.plan} />}
          {answer?.error && !isInvalid(answer.error) && <ErrorNote error={answer.error} />}
        </div>
      )}
      {errors.length > 0 && (
        <List size="sm" mt={4} aria-label="What is wrong">
          {errors.map(({ field, message }) => (
            <List.Item key={`${field} ${message}`}>
              <Anchor component="button" type="button" size="sm" underline="always" onClick={() => onGoTo(field)}>
                {field}
              </Anchor>
              : {message}
            </List.Item>
          ))}
        </List>
      )}
    </section>
  )
}

function isInvalid(error: Error): boolean {
  return error instanceof ProblemError && error.fields.length > 0
}

function refusalOf(error: Error | null): string {
  return error && isInvalid(error) ? "It would be refused" : "Nothing is known now"
}

function verdictOf(plan: Plan): string {
  if (plan.starts_now) return "It would start now"
  return `It would not start now: ${plan.reason ?? "it waits for its turn"}`
}

function PlanDetails({ plan }: { plan: Plan }) {
  const { starts_now: startsNow, predicted_start: start } = plan
  return (
    <>
      <dl className={classes.facts}>
        {plan.placements.map(({ node_rank: node, host, devices }) => (
          <Fact key={node} name={plan.placements.length > 1 ? `Node ${node}` : "Where"}>
            {host}: {devices.join(", ")}
          </Fact>
        ))}
        <Fact name="Ranks">{count(plan.world_size)}</Fact>
        {plan.batch_per_rank !== null && <Fact name="Batch per rank">{count(plan.batch_per_rank)}</Fact>}
        {!startsNow && <Fact name="Place in the line">{count(plan.position)}</Fact>}
        {!startsNow && (
          <Fact name="Predicted start">
            {start === null ? (
              "not known"
            ) : (
              <>
                <At at={start} /> (<Ago at={start} />)
              </>
            )}
          </Fact>
        )}
        {plan.waits_for.length > 0 && (
          <Fact name="Waits for">
            {plan.waits_for.map(({ host, device, job_id: id }) => (
              <div key={`${host} ${device}`}>
                {host} {device}, which{" "}
                <Anchor component={Link} href={`/jobs/${id}`} size="sm" underline="always">
                  job {id}
                </Anchor>{" "}
                has or gets first
              </div>
            ))}
          </Fact>
        )}
        {plan.hosts.length > 0 && (
          <Fact name="Hosts for it">
            {plan.hosts.map((host) => (
              <div key={host.host}>{wordsOf(host)}</div>
            ))}
          </Fact>
        )}
      </dl>
      {plan.warnings.map((warning) => (
        <p key={warning} className={classes.warning}>
          <strong>Warning:</strong> {warning}
        </p>
      ))}
    </>
  )
}

function wordsOf({ host, devices, free, closed }: CandidateHost): string {
  return `${host}: ${count(free.length)} of ${count(devices)} free${closed === null ? "" : `, but ${closed}`}`
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
