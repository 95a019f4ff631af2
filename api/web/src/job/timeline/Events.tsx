/** What has happened to a job, event by event, the newest first. */
import { Button, Table, Text } from "@mantine/core"

import type { JobEvent } from "../../api/types"
import { figure } from "../../format/numbers"
import { Empty } from "../../parts/Empty"
import { ErrorNote } from "../../parts/ErrorNote"
import { Loading } from "../../parts/Loading"
import { At } from "../../parts/Time"
import { ScrolledTable } from "../../parts/ScrolledTable"
import { classFigures, eventWords } from "./eventWords"
import classes from "./Events.module.css"
import { useEvents } from "./useEvents"

export function Events({ jobId, kinds }: { jobId: number; kinds: readonly string[] }) {
  const { events, error, retry, hasOlder, isReadingOlder, showOlder } = useEvents(jobId, kinds)
  if (!events) return error ? <ErrorNote error={error} onRetry={retry} /> : <Loading what="events" />
  if (events.length === 0) return <Empty title="Nothing of this kind has happened" />
  return (
    <>
      <ol className={classes.events} reversed>
        {events.map((event) => (
          <li key={event.id} className={classes.event}>
            <Text size="xs" c="dimmed" className={classes.at}>
              <At at={event.at} />
              {event.attempt > 0 && ` · attempt ${event.attempt}`}
            </Text>
            <Told event={event} />
          </li>
        ))}
      </ol>
      {error && <ErrorNote error={error} onRetry={retry} />}
      {hasOlder && (
        <Button size="xs" variant="default" mt="xs" loading={isReadingOlder} onClick={showOlder}>
          Show older
        </Button>
      )}
    </>
  )
}

function Told({ event }: { event: JobEvent }) {
  const { title, more } = eventWords(event)
  const figures = classFigures(event)
  return (
    <div className={classes.told}>
      <Text size="sm" fw={600} span>
        {title}
      </Text>{" "}
      <Text size="sm" span>
        {more}
      </Text>
      {figures && (
        <details>
          <summary>Figures of each class</summary>
          <ScrolledTable label={`Figures of each class: ${title}`}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th scope="col">Class</Table.Th>
                {figures.names.map((name) => (
                  <Table.Th key={name} scope="col" ta="right">
                    {name}
                  </Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {figures.rows.map(([name, values]) => (
                <Table.Tr key={name}>
                  <Table.Th scope="row">{name}</Table.Th>
                  {figures.names.map((each) => (
                    <Table.Td key={each} ta="right">
                      {typeof values[each] === "number" ? figure(values[each]) : "–"}
                    </Table.Td>
                  ))}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </ScrolledTable>
        </details>
      )}
    </div>
  )
}
