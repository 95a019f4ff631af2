/** The table of what differs between the specs of the compared jobs. */
import { Code, Table, Text } from "@mantine/core"
import { useMemo } from "react"

import type { Job } from "../api/types"
import { NO_VALUE } from "../format/differences"
import { ScrolledTable } from "../parts/ScrolledTable"
import { JobHeadings } from "./JobHeadings"
import { specDifferences } from "./specDifferences"

export function SpecDifferences({ jobs }: { jobs: readonly Job[] }) {
  const differences = useMemo(() => specDifferences(jobs.map(({ spec }) => spec)), [jobs])
  if (differences.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        Nothing: but for their names, their specs are the same.
      </Text>
    )
  }
  return (
    <ScrolledTable label="Differences of the specs">
      <JobHeadings first="Field" jobs={jobs} />
      <Table.Tbody>
        {differences.map(({ field, values }) => (
          <Table.Tr key={field}>
            <Table.Th scope="row">{field}</Table.Th>
            {jobs.map(({ id }, index) => {
              const value = values[index] ?? null
              return (
                <Table.Td key={id}>
                  {value === null ? (
                    <Text size="sm" c="dimmed">
                      {NO_VALUE}
                    </Text>
                  ) : (
                    <Code>{value}</Code>
                  )}
                </Table.Td>
              )
            })}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </ScrolledTable>
  )
}
