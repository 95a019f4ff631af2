/** One checkpoint in the table of a job's: what it is, and what can be done with it. */
import { Button, CopyButton, Group, Stack, Table, Text } from "@mantine/core"
import { Link } from "wouter"

import { ProblemError } from "../../api/problems"
import type { Checkpoint } from "../../api/types"
import { bytes, count, figure, percent } from "../../format/numbers"
import { CopyText } from "../../parts/CopyText"
import { ErrorNote } from "../../parts/ErrorNote"
import { Mark } from "../../parts/Mark"
import { Ago } from "../../parts/Time"
import { useDownload } from "./useDownload"

interface CheckpointRowProps {
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
  const short = checkpoint.sha256.slice(0, 8)
  const name = `checkpoint ${checkpoint.id}`
  return (
    <>
      <Table.Tr c={isThere ? undefined : "dimmed"}>
        <Table.Th scope="row">
          <Group gap={4} wrap="nowrap">
            {checkpoint.id}
            {checkpoint.best && <Mark>best</Mark>}
            {isLast && <Mark>last</Mark>}
            {!isThere && <Mark>{checkpoint.doomed_at === null ? "removed" : "being removed"}</Mark>}
          </Group>
        </Table.Th>
        <Table.Td>
          {isThere && (
            <Group gap={4} wrap="nowrap">
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
                  aria-label={`New job from here, ${name}`}
                >
                  New job from here
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
          <CopyButton value={checkpoint.sha256}>
            {({ copied, copy }) => (
              <Button
                size="compact-xs"
                variant="default"
                ff="monospace"
                title={checkpoint.sha256}
                onClick={copy}
                aria-label={copied ? "Copied" : `${short}, copy the SHA-256 of ${name}`}
              >
                {copied ? "Copied" : short}
              </Button>
            )}
          </CopyButton>
        </Table.Td>
      </Table.Tr>
      {download.error && (
        <Table.Tr>
          <Table.Td colSpan={7 + values.length}>
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
