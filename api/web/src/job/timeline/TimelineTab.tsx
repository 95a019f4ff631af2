/** What has become of a job: its states along its time, its attempts with their hosts, and every event. */
import { Checkbox, Group } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useSearchParams } from "wouter"

import { attemptsQuery } from "../../api/queries"
import type { Job } from "../../api/types"
import { Empty } from "../../parts/Empty"
import { ErrorNote } from "../../parts/ErrorNote"
import { Loading } from "../../parts/Loading"
import { Section } from "../Section"
import { Attempts } from "./Attempts"
import { Events } from "./Events"
import { kindsIn, KINDS, toggled } from "./kinds"
import { StateBar } from "./StateBar"

export default function TimelineTab({ job }: { job: Job }) {
  const attempts = useQuery(attemptsQuery(job.id))
  const [search, setSearch] = useSearchParams()
  const shown = kindsIn(search)
  // By the API's own kinds; those of one box come together.
  const kinds = KINDS.filter(({ name }) => shown.has(name)).flatMap(({ of }) => of)
  return (
    <>
      <Section title="States">
        <StateBar job={job} />
      </Section>
      <Section title="Attempts">
        {attempts.data ? (
          attempts.data.length > 0 ? (
            <Attempts jobId={job.id} attempts={attempts.data} />
          ) : (
            <Empty title="It has not been started yet" />
          )
        ) : attempts.error ? (
          <ErrorNote error={attempts.error} onRetry={() => void attempts.refetch()} />
        ) : (
          <Loading what="attempts" />
        )}
      </Section>
      <Section
        title="Events"
        aside={
          <Group gap="sm" role="group" aria-label="Kinds of events">
            {KINDS.map(({ name, title }) => (
              <Checkbox
                key={name}
                size="xs"
                label={title}
                checked={shown.has(name)}
                onChange={() => setSearch((before) => toggled(before, name), { replace: true })}
              />
            ))}
          </Group>
        }
      >
        {kinds.length > 0 ? (
          <Events key={kinds.join()} jobId={job.id} kinds={kinds} />
        ) : (
          <Empty title="No kind of event is chosen" />
        )}
      </Section>
    </>
  )
}
