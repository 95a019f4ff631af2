/** A job that was found, as one of those to choose from. */
import { Combobox, Group, Text } from "@mantine/core"

import type { Job } from "../api/types"
import { StateBadge } from "./StateBadge"

export function FoundJob({ job, value }: { job: Job; value: string }) {
  return (
    <Combobox.Option value={value}>
      <Group gap="xs" wrap="nowrap">
        <Text size="sm">#{job.id}</Text>
        <Text size="sm" truncate>
          {job.name}
        </Text>
        <StateBadge state={job.state} />
      </Group>
    </Combobox.Option>
  )
}
