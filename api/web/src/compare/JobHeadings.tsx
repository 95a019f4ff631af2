/** The head of a table with a column for each compared job. */
import { Anchor, Table } from "@mantine/core"
import { Link } from "wouter"

import type { Job } from "../api/types"

export function JobHeadings({ first, jobs }: { first: string; jobs: readonly Job[] }) {
  return (
    <Table.Thead>
      <Table.Tr>
        <Table.Th scope="col">{first}</Table.Th>
        {jobs.map(({ id, name }) => (
          <Table.Th key={id} scope="col">
            <Anchor
              component={Link}
              href={`/jobs/${id}`}
              size="sm"
              maw={320}
              display="inline-block"
              truncate
              title={name}
            >
              #{id} {name}
            </Anchor>
          </Table.Th>
        ))}
      </Table.Tr>
    </Table.Thead>
  )
}
