/** Whether what is shown is live, and how to try again at once where it is not. */
import { Button, Group, Text } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"

import { api, data } from "../api/client"
import { isPassing } from "../api/problems"
import { connections, useConnection } from "../live/connections"

/** What a phone has room for, and what follows it elsewhere. */
const SHORT = { live: "Live", connecting: "Connecting…", broken: "Connection lost", away: "Database away" }
const REST = { live: "", connecting: "", broken: ", trying again…", away: ", trying again…" }
const COLOURS = { live: "green", connecting: "gray", broken: "red", away: "red" }

export function ConnectionBadge() {
  const connection = useConnection()
  const isDatabaseAway = useIsDatabaseAway()
  const shown = connection === "live" && isDatabaseAway ? "away" : connection
  return (
    <Group gap={6} wrap="nowrap" role="status" aria-label="Connection">
      <span
        aria-hidden
        style={{
          width: 8,
          height: 8,
          borderRadius: "50%",
          flexShrink: 0,
          background: `var(--mantine-color-${COLOURS[shown]}-7)`,
        }}
      />
      <Text size="xs">
        {SHORT[shown]}
        <Text span inherit visibleFrom="sm">
          {REST[shown]}
        </Text>
      </Text>
      {connection === "broken" && (
        <Button variant="default" size="compact-xs" onClick={connections.retryNow}>
          Try now
        </Button>
      )}
    </Group>
  )
}

/** A stream stays open while the service has lost its database: nothing happens on it then, and nobody says so. */
function useIsDatabaseAway(): boolean {
  const ready = useQuery({
    queryKey: ["readyz"],
    queryFn: ({ signal }) => data(api.GET("/readyz", { signal })),
    retry: false,
    refetchInterval: ({ state }) => (state.error ? 3_000 : 15_000),
  })
  return ready.error !== null && isPassing(ready.error)
}
