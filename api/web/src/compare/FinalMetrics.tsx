/** The table of what each metric came to in each of the compared jobs. */
import { Table, Text } from "@mantine/core"
import { useMemo } from "react"

import type { Job } from "../api/types"
import type { Curves } from "../charts/metricStore"
import { count, figure } from "../format/numbers"
import { Mark } from "../parts/Mark"
import { ScrolledTable } from "../parts/ScrolledTable"
import { finalMetrics, type Cell } from "./finalMetrics"
import { JobHeadings } from "./JobHeadings"

export function FinalMetrics({ jobs, known }: { jobs: readonly Job[]; known: ReadonlyMap<number, Curves> }) {
  const rows = useMemo(() => finalMetrics(jobs.map(({ id }) => known.get(id))), [jobs, known])
  // Of those that are not read yet, or could not be, nothing is known.
  if (rows.length === 0 && jobs.some(({ id }) => !known.has(id))) return null
  if (rows.length === 0) {
    return (
      <Text size="sm" c="dimmed">
        None of them has reported a metric yet.
      </Text>
    )
  }
  return (
    <ScrolledTable label="Final metrics">
      <JobHeadings first="Metric" jobs={jobs} />
      <Table.Tbody>
        {rows.map(({ name, better, cells }) => (
          <Table.Tr key={name}>
            <Table.Th scope="row">
              {name}
              {better && (
                <Text size="xs" c="dimmed" fw={400}>
                  {better} is better
                </Text>
              )}
            </Table.Th>
            {jobs.map(({ id }, index) => (
              <Table.Td key={id}>
                <Figures cell={cells[index] ?? null} />
              </Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </ScrolledTable>
  )
}

function Figures({ cell }: { cell: Cell | null }) {
  if (cell === null) return "–"
  const { last, best, isBest } = cell
  return (
    <>
      <Text size="sm" style={{ whiteSpace: "nowrap" }}>
        {last}
      </Text>
      {best && (
        <Text size="xs" c={isBest ? undefined : "dimmed"} fw={isBest ? 700 : 400} style={{ whiteSpace: "nowrap" }}>
          best {figure(best.value)} at step {count(best.step)} {isBest && <Mark>best of all</Mark>}
        </Text>
      )}
    </>
  )
}
