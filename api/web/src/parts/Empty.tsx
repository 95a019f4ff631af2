/** What stands where there is nothing yet, with what to do about it. */
import { Stack, Text } from "@mantine/core"
import type { ReactNode } from "react"

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <Stack align="center" gap="xs" py="xl" px="md">
      <Text fw={600}>{title}</Text>
      {children}
    </Stack>
  )
}
