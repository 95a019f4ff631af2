/** One checkpoint in the table of a job's: what it is, and what can be done with it. */
import { Button, Code, CopyButton, Group, Stack, Table, Text } from "@mantine/core"
import { Link } from "wouter"

import { ProblemError } from "../../api/problems"
import type { Checkpoint } from "../../api/types"
import { bytes, count, figure, percent } from "../../format/numbers"
import { CopyText } from "../../parts/CopyText"
import { ErrorNote } from "../../parts/ErrorNote"
import { Mark } from "../../parts/Mark"
import { Ago } from "../../parts/Time"
import { useDownload } from "./useDownload"

export interface CheckpointRowProps {
  jobId: number
  checkpoint: Checkpoint
  isLast: boolean
  /** Names of the values that have a column. */
  values: readonly string[]
  maySubmit: boolean
  mayRemove: boolean
  onRemove: (checkpoint: Checkpoint) => void
}

export function CheckpointRow({ jobId, checkpoint, isLast, values, ...may }: CheckpointRowProps) {
  const download = useDownload(jobId, checkpoint)
  const isThere = checkpoint.removed_at === null
  const name = `checkpoint ${checkpoint.id}`
  return (
    <>
      <Table.Tr c={isThere ? undefined : "dimmed"}>
        <Table.Th scope="row">{checkpoint.id}</Table.Th>
        <Table.Td>
          <Group gap={4} wrap="nowrap">
            {checkpoint.best && <Mark>best</Mark>}
            {isLast && <Mark>last</Mark>}
            {!isThere && <Mark>{checkpoint.doomed_at === null ? "removed" : "being removed"}</Mark>}
          </Group>
        </Table.Td>
        <Table.Td ta="right">{count(checkpoint.step)}</Table.Td>
        <Table.Td ta="right">{count(checkpoint.epoch)}</Table.Td>
        {values.map((each) => (
          <Table.Td key={each} ta="right">
            {each in checkpoint.values ? figure(checkpoint.values[each], "not finite") : ""}
          </Table.Td>
        ))}
        <Table.Td ta="right" style={{ whiteSpace: "nowrap" }}>
          {bytes(checkpoint.size_bytes)}
        </Table.Td>
        <Table.Td style={{ whiteSpace: "nowrap" }}>
          <Ago at={checkpoint.created_at} />
        </Table.Td>
        <Table.Td>
          <Group gap={4} wrap="nowrap">
            <Code title={checkpoint.sha256}>{checkpoint.sha256.slice(0, 12)}</Code>
            <CopyButton value={checkpoint.sha256}>
              {({ copied, copy }) => (
                <Button size="compact-xs" variant="default" onClick={copy} aria-label={`Copy the SHA-256 of ${name}`}>
                  {copied ? "Copied" : "Copy"}
                </Button>
              )}
            </CopyButton>
          </Group>
        </Table.Td>
        <Table.Td>
          {isThere && (
            <Group gap={4} wrap="nowrap" justify="flex-end">
              {download.isBusy && download.bytes !== null && (
                <>
                  <Text size="xs" role="status">
                    {percent(download.bytes / checkpoint.size_bytes)}
                  </Text>
                  <Button size="compact-xs" variant="default" onClick={download.stop}>
                    Stop
                  </Button>
                </>
              )}
              <Button
                size="compact-xs"
                variant="default"
                loading={download.isBusy}
                onClick={download.start}
                aria-label={`Download ${name}`}
              >
                Download
              </Button>
              {may.maySubmit && (
                <Button
                  size="compact-xs"
                  variant="default"
                  component={Link}
                  href={`/jobs/new?clone=${jobId}&checkpoint=${checkpoint.id}`}
                  aria-label={`Start a new job from ${name}`}
                >
                  Start a new job from here
                </Button>
              )}
              {may.mayRemove && (
                <Button
                  size="compact-xs"
                  variant="default"
                  onClick={() => may.onRemove(checkpoint)}
                  aria-label={`Remove ${name}`}
                >
                  Remove
                </Button>
              )}
            </Group>
          )}
        </Table.Td>
      </Table.Tr>
      {download.error && (
        <Table.Tr>
          <Table.Td colSpan={8 + values.length}>
            <NotDownloaded error={download.error} checkpoint={checkpoint} onRetry={download.start} />
          </Table.Td>
        </Table.Tr>
      )}
    </>
  )
}

/** Why there is no file, and where it lies if this API cannot read it. */
function NotDownloaded({ error, checkpoint, onRetry }: { error: Error; checkpoint: Checkpoint; onRetry: () => void }) {
  const isElsewhere = error instanceof ProblemError && error.status === 409
  return (
    <Stack gap="xs" maw={720}>
      <ErrorNote error={error} onRetry={onRetry} />
      {isElsewhere && (
        <CopyText
          text={`${checkpoint.host_name}:${checkpoint.path}`}
          label={`location of checkpoint ${checkpoint.id}`}
        />
      )}
      {isElsewhere && checkpoint.copy_url !== null && (
        <CopyText text={checkpoint.copy_url} label={`location of the copy of checkpoint ${checkpoint.id}`} />
      )}
    </Stack>
  )
}
