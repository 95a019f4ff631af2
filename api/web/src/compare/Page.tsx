/** Two or more jobs beside one another: their curves, what they came to, and what differs between their specs. */
import { Button, Group, Stack, Text, Title, useComputedColorScheme } from "@mantine/core"
import { useQueries } from "@tanstack/react-query"
import { Link } from "wouter"

import { jobQuery } from "../api/queries"
import type { Job } from "../api/types"
import { Swatch } from "../charts/Legend"
import { useMetrics } from "../charts/useMetrics"
import { count } from "../format/numbers"
import { Empty } from "../parts/Empty"
import { ErrorNote } from "../parts/ErrorNote"
import { Loading } from "../parts/Loading"
import { PageTitle } from "../parts/PageTitle"
import { StateBadge } from "../parts/StateBadge"
import { useChosenJobs } from "./chosenJobs"
import { ComparedCurves } from "./ComparedCurves"
import { FinalMetrics } from "./FinalMetrics"
import { JobPicker } from "./JobPicker"
import { SpecDifferences } from "./SpecDifferences"

export default function ComparePage() {
  const { chosen, leftOut, choose } = useChosenJobs()
  const answers = useQueries({ queries: chosen.map((id) => jobQuery(id)), combine })
  const { jobs, errors } = answers
  const without = (id: number) => choose(chosen.filter((each) => each !== id))

  return (
    <>
      <PageTitle title="Compare" documentTitle={chosen.length === 0 ? "Compare" : `Compare ${chosen.join(", ")}`} />
      <Stack gap="sm" mb="lg">
        <JobPicker chosen={chosen} onAdd={(job) => choose([...chosen, job])} />
        <ChosenJobs jobs={jobs} onRemove={without} />
        {leftOut > 0 && (
          <Text size="sm">
            These are the first {chosen.length} of {count(chosen.length + leftOut)}: no more lines can be told apart.
          </Text>
        )}
        {errors.map(({ index, error }) => {
          const id = chosen[index] ?? 0
          return (
            <Stack key={id} gap={4} align="start">
              <ErrorNote error={error} />
              <Button variant="default" size="xs" onClick={() => without(id)}>
                Leave job {id} out
              </Button>
            </Stack>
          )
        })}
      </Stack>
      {chosen.length === 0 && (
        <Empty title="Choose two or more jobs">
          <Text size="sm">Add them above, or select them in the table of jobs.</Text>
        </Empty>
      )}
      {chosen.length > 0 && jobs.length === 0 && errors.length === 0 && <Loading what="the jobs" />}
      {jobs.length > 0 && <Compared jobs={jobs} />}
    </>
  )
}

function Compared({ jobs }: { jobs: readonly Job[] }) {
  const { snapshot, retry } = useMetrics(jobs)
  return (
    <>
      {jobs.map(({ id }) => {
        const error = snapshot.errors.get(id)
        return error && <ErrorNote key={id} error={error} onRetry={() => retry(id)} />
      })}
      <Title order={2} size="h3" mb="xs">
        Curves
      </Title>
      {jobs.some(({ id }) => !snapshot.jobs.has(id) && !snapshot.errors.has(id)) && <Loading what="metrics" />}
      <ComparedCurves jobs={jobs} known={snapshot.jobs} />
      <Title order={2} size="h3" mt="xl" mb="xs">
        Final metrics
      </Title>
      <FinalMetrics jobs={jobs} known={snapshot.jobs} />
      <Title order={2} size="h3" mt="xl" mb="xs">
        What differs in their specs
      </Title>
      {jobs.length > 1 ? (
        <SpecDifferences jobs={jobs} />
      ) : (
        <Text size="sm" c="dimmed">
          Add another job to see what differs.
        </Text>
      )}
    </>
  )
}

function ChosenJobs({ jobs, onRemove }: { jobs: readonly Job[]; onRemove: (id: number) => void }) {
  const scheme = useComputedColorScheme()
  return (
    <Group gap="xs" component="ul" aria-label="Compared jobs" m={0} p={0} style={{ listStyle: "none" }}>
      {jobs.map(({ id, name, state }, index) => (
        <Group key={id} component="li" gap={6} wrap="nowrap" miw={0} maw="100%">
          <Swatch index={index} scheme={scheme} />
          <Text size="sm" component={Link} href={`/jobs/${id}`} c="inherit" truncate title={name}>
            #{id} {name}
          </Text>
          <StateBadge state={state} />
          <Button variant="default" size="compact-xs" aria-label={`Remove job ${id}`} onClick={() => onRemove(id)}>
            Remove
          </Button>
        </Group>
      ))}
    </Group>
  )
}

/** What has been answered, in the order of the address; a list that stays the same as long as no answer changes. */
function combine(results: readonly { data: Job | undefined; error: Error | null }[]) {
  return {
    jobs: results.flatMap(({ data }) => data ?? []),
    errors: results.flatMap(({ data, error }, index) => (data === undefined && error ? [{ index, error }] : [])),
  }
}
