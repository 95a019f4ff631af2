/** A job's checkpoints: which there are, where they are, and what can begin with them. */
import { Button, Checkbox, Group, Table, Text } from "@mantine/core"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"

import { api, data } from "../../api/client"
import { keys } from "../../api/queries"
import type { Checkpoint, Job } from "../../api/types"
import { count } from "../../format/numbers"
import { Confirm } from "../../parts/Confirm"
import { Empty } from "../../parts/Empty"
import { ErrorNote } from "../../parts/ErrorNote"
import { Loading } from "../../parts/Loading"
import { notices } from "../../parts/notices"
import { useAddress } from "../../parts/address"
import { useRights } from "../../session/rights"
import { ScrolledTable } from "../../parts/ScrolledTable"
import { Section } from "../Section"
import { CheckpointRow } from "./CheckpointRow"
import { lastOf, useCheckpoints, valueNames } from "./useCheckpoints"

/** So many rows at a time: with the removed ones a long job has thousands. */
const ROWS = 100

export default function CheckpointsTab({ job }: { job: Job }) {
  const { params, change } = useAddress()
  const removed = params.get("removed") === "true"
  const found = useCheckpoints(job.id, { removed })
  const rights = useRights()
  const [leaving, setLeaving] = useState<Checkpoint | "others" | null>(null)
  const removal = useRemoval(job.id)

  const confirm = () => {
    if (leaving === null) return
    removal.mutate(leaving, { onSettled: () => setLeaving(null) })
  }

  return (
    <Section
      title="Checkpoints"
      aside={
        <Group gap="sm">
          <Checkbox
            size="xs"
            label="Also those that were removed"
            checked={removed}
            onChange={({ currentTarget: { checked } }) => change({ removed: checked ? "true" : null })}
          />
          {rights.mayChange(job) && (found.data?.filter(isThere).length ?? 0) > 1 && (
            <Button size="xs" variant="default" onClick={() => setLeaving("others")}>
              Keep only best and last
            </Button>
          )}
        </Group>
      }
    >
      {found.data ? (
        <CheckpointTable job={job} checkpoints={found.data} onRemove={setLeaving} />
      ) : found.error ? (
        <ErrorNote error={found.error} onRetry={() => void found.refetch()} />
      ) : (
        <Loading what="checkpoints" />
      )}
      <Confirm
        opened={leaving !== null}
        title={leaving === "others" ? "Remove all others?" : `Remove checkpoint ${leaving?.id ?? ""}?`}
        verb="Remove"
        isBusy={removal.isPending}
        onConfirm={confirm}
        onClose={() => setLeaving(null)}
      >
        {leaving === "others"
          ? "All checkpoints but the best and the last are deleted, with their copies. Those that a run may still need stay."
          : "Its file and its copy are deleted, and no run begins with it from now on."}
      </Confirm>
    </Section>
  )
}

interface CheckpointTableProps {
  job: Job
  checkpoints: readonly Checkpoint[]
  onRemove: (checkpoint: Checkpoint) => void
}

function CheckpointTable({ job, checkpoints, onRemove }: CheckpointTableProps) {
  const rights = useRights()
  const [rows, setRows] = useState(ROWS)
  const last = lastOf(checkpoints)
  const values = valueNames(checkpoints)
  if (checkpoints.length === 0) {
    return (
      <Empty title="No checkpoints">
        <Text size="sm" c="dimmed">
          A run saves one at the end of each epoch.
        </Text>
      </Empty>
    )
  }
  return (
    <>
      <ScrolledTable label="Checkpoints">
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Checkpoint</Table.Th>
            <Table.Th scope="col">Do</Table.Th>
            <Table.Th scope="col" ta="right">
              Step
            </Table.Th>
            <Table.Th scope="col" ta="right">
              Epochs
            </Table.Th>
            {values.map((name) => (
              <Table.Th key={name} scope="col" ta="right">
                {name}
              </Table.Th>
            ))}
            <Table.Th scope="col" ta="right">
              Size
            </Table.Th>
            <Table.Th scope="col">Saved</Table.Th>
            <Table.Th scope="col">SHA-256</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {checkpoints.slice(0, rows).map((checkpoint) => (
            <CheckpointRow
              key={checkpoint.id}
              jobId={job.id}
              checkpoint={checkpoint}
              isLast={checkpoint === last}
              values={values}
              maySubmit={rights.maySubmit}
              mayRemove={rights.mayChange(job)}
              onRemove={onRemove}
            />
          ))}
        </Table.Tbody>
      </ScrolledTable>
      {checkpoints.length > rows && (
        <Button size="xs" variant="default" mt="xs" onClick={() => setRows(rows + ROWS)}>
          Show more of {count(checkpoints.length)}
        </Button>
      )}
    </>
  )
}

function isThere(checkpoint: Checkpoint): boolean {
  return checkpoint.removed_at === null
}

function useRemoval(jobId: number) {
  const client = useQueryClient()
  const path = { job_id: jobId }
  return useMutation({
    mutationFn: async (what: Checkpoint | "others") => {
      if (what === "others") {
        const body = { keep: ["best" as const, "last" as const] }
        const answer = await data(api.POST("/jobs/{job_id}/checkpoints/prune", { params: { path }, body }))
        const many = answer.removed.length
        return many === 1 ? "One checkpoint is removed" : `${count(many)} checkpoints are removed`
      }
      const one = { ...path, checkpoint_id: what.id }
      await api.DELETE("/jobs/{job_id}/checkpoints/{checkpoint_id}", { params: { path: one } })
      return `Checkpoint ${what.id} is removed`
    },
    onSuccess: (told) => notices.done(told),
    onError: (error) => notices.failed(error.message),
    onSettled: () => client.invalidateQueries({ queryKey: keys.checkpoints(jobId) }),
  })
}
