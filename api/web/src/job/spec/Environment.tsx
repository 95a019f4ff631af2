/** In what a job's newest attempt ran: its hosts and their devices, its folders there, and how the work was shared. */
import { Table, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"

import { attemptsQuery } from "../../api/queries"
import type { Attempt, Job } from "../../api/types"
import { count } from "../../format/numbers"
import { Empty } from "../../parts/Empty"
import { ErrorNote } from "../../parts/ErrorNote"
import { Loading } from "../../parts/Loading"
import { Mark } from "../../parts/Mark"
import { Facts, type Fact } from "../Facts"
import { ScrolledTable } from "../../parts/ScrolledTable"

export function Environment({ job }: { job: Job }) {
  const attempts = useQuery(attemptsQuery(job.id))
  if (attempts.error && !attempts.data) {
    return <ErrorNote error={attempts.error} onRetry={() => void attempts.refetch()} />
  }
  if (!attempts.data) return <Loading what="attempts" />
  const newest = attempts.data.at(-1)
  if (!newest) return <Empty title="It has not been started yet" />
  return (
    <>
      <Facts facts={factsOf(job, newest)} />
      <Devices attempt={newest} />
    </>
  )
}

function factsOf(job: Job, attempt: Attempt): Fact[] {
  const facts: Fact[] = [
    { name: "Attempt", value: attempt.number },
    { name: "Ranks", value: count(attempt.world_size) },
  ]
  for (const { node_rank, host, run_dir } of attempt.placements) {
    facts.push({
      name: attempt.placements.length > 1 ? `Run directory of node ${node_rank}` : "Run directory",
      value: `${host}:${run_dir}`,
    })
  }
  const root = job.spec.checkpoint_root
  if (typeof root === "string") facts.push({ name: "Checkpoints are copied to", value: root })
  const { secrets } = job.spec
  if (typeof secrets === "object" && secrets !== null && Object.keys(secrets).length > 0) {
    facts.push({ name: "Variables with secrets", value: Object.keys(secrets).join(", ") })
  }
  return facts
}

function Devices({ attempt }: { attempt: Attempt }) {
  let first = 0
  const rows = attempt.placements.flatMap(({ host, devices }) =>
    devices.map((device) => ({ host, device, rank: first++ })),
  )
  // On a CPU several ranks share one host; only a rank on each device is told by its device.
  const isOneEach = rows.length === attempt.world_size
  return (
    <ScrolledTable label="Devices">
      <Table.Thead>
        <Table.Tr>
          {isOneEach && (
            <Table.Th scope="col" ta="right">
              Rank
            </Table.Th>
          )}
          <Table.Th scope="col">Host</Table.Th>
          <Table.Th scope="col">Device</Table.Th>
          <Table.Th scope="col">Model</Table.Th>
          <Table.Th scope="col">Number by its driver</Table.Th>
          <Table.Th scope="col">UUID</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.map(({ host, device, rank }) => (
          <Table.Tr key={rank}>
            {isOneEach && <Table.Td ta="right">{rank}</Table.Td>}
            <Table.Td>{host}</Table.Td>
            <Table.Th scope="row">{device.name}</Table.Th>
            <Table.Td>{device.simulated ? <Mark>simulated</Mark> : (device.model ?? "–")}</Table.Td>
            <Table.Td>{device.driver_index ?? "–"}</Table.Td>
            <Table.Td>
              <Text size="sm" ff="monospace">
                {device.uuid ?? "–"}
              </Text>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </ScrolledTable>
  )
}
