/** Whether what is shown is live, and how to try again at once where it is not. */
import { Button, Group, Text } from "@mantine/core"

import { connections, useConnection } from "../live/connections"

const WORDS = { live: "Live", connecting: "Connecting…", broken: "Connection lost, trying again…" }
const COLOURS = { live: "green", connecting: "gray", broken: "red" }

export function ConnectionBadge() {
  const connection = useConnection()
  return (
    <Group gap={6} wrap="nowrap" role="status" aria-label="Connection">
      <span
        aria-hidden
        style={{
          width: 8,
          height: 8,
          borderRadius: "50%",
          background: `var(--mantine-color-${COLOURS[connection]}-7)`,
        }}
      />
      <Text size="xs">{WORDS[connection]}</Text>
      {connection === "broken" && (
        <Button variant="default" size="compact-xs" onClick={connections.retryNow}>
          Try now
        </Button>
      )}
    </Group>
  )
}
