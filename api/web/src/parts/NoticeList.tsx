/** The notices, at the page's lower edge, read out as they come. */
import { CloseButton, Group, Paper, Portal, Stack, Text } from "@mantine/core"
import { useSyncExternalStore } from "react"

import { notices } from "./notices"

export function NoticeList() {
  const shown = useSyncExternalStore(notices.subscribe, notices.get)
  return (
    <Portal>
      <Stack
        role="region"
        aria-label="Notices"
        aria-live="polite"
        gap="xs"
        style={{
          position: "fixed",
          bottom: 16,
          right: 16,
          left: "auto",
          maxWidth: "min(420px, calc(100vw - 32px))",
          zIndex: 1000,
        }}
      >
        {shown.map(({ id, text, kind }) => (
          <Paper
            key={id}
            withBorder
            shadow="md"
            p="sm"
            style={{ borderLeft: `4px solid var(--mantine-color-${kind === "done" ? "green" : "red"}-7)` }}
          >
            <Group justify="space-between" wrap="nowrap" align="start">
              <Text size="sm">{text}</Text>
              <CloseButton size="sm" aria-label="Close notice" onClick={() => notices.close(id)} />
            </Group>
          </Paper>
        ))}
      </Stack>
    </Portal>
  )
}
