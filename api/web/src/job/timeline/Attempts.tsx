/** Every attempt of a job: how it went, where, and where it went on from. */
import { Anchor, Table, Text } from "@mantine/core"
import { Link } from "wouter"

import type { Attempt } from "../../api/types"
import { count } from "../../format/numbers"
import { failureInWords } from "../../format/reasons"
import { At, Lasted } from "../../parts/Time"
import { ScrolledTable } from "../../parts/ScrolledTable"
import { Placements } from "./Placements"

export function Attempts({ jobId, attempts }: { jobId: number; attempts: readonly Attempt[] }) {
  return (
    <ScrolledTable label="Attempts">
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Attempt</Table.Th>
          <Table.Th scope="col">Outcome</Table.Th>
          <Table.Th scope="col">Placed</Table.Th>
          <Table.Th scope="col">Trained for</Table.Th>
          <Table.Th scope="col">Began at</Table.Th>
          <Table.Th scope="col" ta="right">
            Ranks
          </Table.Th>
          <Table.Th scope="col">Hosts and devices</Table.Th>
          <Table.Th scope="col">Why it ended</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {attempts.toReversed().map((attempt) => (
          <Table.Tr key={attempt.number}>
            <Table.Th scope="row">
              <Anchor
                component={Link}
                href={`/jobs/${jobId}/logs?attempt=${attempt.number}`}
                size="sm"
                underline="always"
                aria-label={`Attempt ${attempt.number}, its log`}
              >
                {attempt.number}
              </Anchor>
            </Table.Th>
            <Table.Td>{attempt.outcome ?? "under way"}</Table.Td>
            <Table.Td style={{ whiteSpace: "nowrap" }}>
              <At at={attempt.created_at} />
            </Table.Td>
            <Table.Td>
              {attempt.started_at ? <Lasted from={attempt.started_at} to={attempt.ended_at} /> : "not begun"}
            </Table.Td>
            <Table.Td>{attempt.resumed_step === null ? "the start" : `step ${count(attempt.resumed_step)}`}</Table.Td>
            <Table.Td ta="right">{count(attempt.world_size)}</Table.Td>
            <Table.Td>
              <Placements placements={attempt.placements} />
            </Table.Td>
            <Table.Td miw={220}>
              <Text size="sm" style={{ overflowWrap: "anywhere" }}>
                {whyEnded(attempt)}
              </Text>
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </ScrolledTable>
  )
}

function whyEnded({ outcome, stop_message, failure }: Attempt): string {
  if (outcome === "succeeded") return ""
  return [stop_message, failure && failureInWords(failure)].filter(Boolean).join(" · ")
}
