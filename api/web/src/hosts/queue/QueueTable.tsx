/** The line as a table: place, job, what it wants, when it is foretold to start, and what it waits for. */
import { Anchor, Table } from "@mantine/core"
import { Link } from "wouter"

import { devicesInWords } from "../../format/devices"
import { Ago, At } from "../../parts/Time"
import { ScrolledTable } from "../../parts/ScrolledTable"
import type { WaitingJob } from "./line"

export function QueueTable({ jobs }: { jobs: readonly WaitingJob[] }) {
  return (
    <ScrolledTable label="Waiting jobs in planned order">
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Place</Table.Th>
          <Table.Th scope="col">Job</Table.Th>
          <Table.Th scope="col">User</Table.Th>
          <Table.Th scope="col">Priority</Table.Th>
          <Table.Th scope="col">Wants</Table.Th>
          <Table.Th scope="col">Foretold start</Table.Th>
          <Table.Th scope="col">Waits for</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {jobs.map((job) => (
          <Table.Tr key={job.id}>
            <Table.Td>{job.position ?? "–"}</Table.Td>
            <Table.Th scope="row" fw={400}>
              <Anchor component={Link} href={`/jobs/${job.id}`} size="sm">
                #{job.id} {job.name}
              </Anchor>
            </Table.Th>
            <Table.Td>{job.user ?? "–"}</Table.Td>
            <Table.Td>{job.priority}</Table.Td>
            <Table.Td style={{ whiteSpace: "nowrap" }}>{devicesInWords(job.spec)}</Table.Td>
            <Table.Td style={{ whiteSpace: "nowrap" }}>
              {job.predicted_start === null ? (
                "not foretold"
              ) : (
                <>
                  <At at={job.predicted_start} /> (<Ago at={job.predicted_start} />)
                </>
              )}
            </Table.Td>
            <Table.Td miw={260}>
              {job.reason ?? "its first plan"}
              <Obstacles job={job} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </ScrolledTable>
  )
}

/** The first few devices in its way, and who has them. */
function Obstacles({ job }: { job: WaitingJob }) {
  if (job.waits_for.length === 0) return null
  return (
    <div>
      {job.waits_for.map(({ host, device, job_id: holder }, index) => (
        <span key={`${host} ${device}`}>
          {index > 0 && ", "}
          {device} of {host} (
          <Anchor component={Link} href={`/jobs/${holder}`} size="sm">
            #{holder}
          </Anchor>
          )
        </span>
      ))}
    </div>
  )
}
