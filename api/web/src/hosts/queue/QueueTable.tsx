/** The line as a table: place, job, what it wants, when it is foretold to start, and what it waits for. */
import { Anchor, Table } from "@mantine/core"
import { Fragment, memo } from "react"
import { Link } from "wouter"

import { devicesInWords } from "../../format/devices"
import { count } from "../../format/numbers"
import { At } from "../../parts/Time"
import { ScrolledTable } from "../../parts/ScrolledTable"
import type { WaitingJob } from "./line"

/** Made anew only when the line has changed: the charts beside it move with the time. */
export const QueueTable = memo(function QueueTable({ jobs }: { jobs: readonly WaitingJob[] }) {
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
          <Table.Th scope="col">In its way</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {jobs.map((job) => (
          <Table.Tr key={job.id}>
            <Table.Td>{typeof job.position === "number" ? count(job.position) : "–"}</Table.Td>
            <Table.Th scope="row" fw={400}>
              <Anchor component={Link} href={`/jobs/${job.id}`} size="sm">
                #{job.id} {job.name}
              </Anchor>
            </Table.Th>
            <Table.Td>{job.user ?? "–"}</Table.Td>
            <Table.Td>{count(job.priority)}</Table.Td>
            <Table.Td style={{ whiteSpace: "nowrap" }}>{devicesInWords(job.spec)}</Table.Td>
            <Table.Td style={{ whiteSpace: "nowrap" }}>
              {job.predicted_start === null ? "not foretold" : <At at={job.predicted_start} />}
            </Table.Td>
            <Table.Td miw={260}>{job.reason ?? "its first plan"}</Table.Td>
            <Table.Td>
              <Holders job={job} />
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </ScrolledTable>
  )
})

/** Who has the first few devices in its way, or comes before it for them. */
function Holders({ job }: { job: WaitingJob }) {
  const holders = [...new Set(job.waits_for.map(({ job_id }) => job_id))]
  return holders.map((id, index) => (
    <Fragment key={id}>
      {index > 0 && ", "}
      <Anchor component={Link} href={`/jobs/${id}`} size="sm">
        #{id}
      </Anchor>
    </Fragment>
  ))
}
