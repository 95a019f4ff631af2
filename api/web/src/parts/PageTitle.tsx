/** A page's heading, which is also the document's title. */
import { Group, Title } from "@mantine/core"
import type { ReactNode } from "react"

export function PageTitle({
  title,
  documentTitle,
  children,
}: {
  title: ReactNode
  documentTitle: string
  children?: ReactNode
}) {
  return (
    <Group justify="space-between" mb="md" gap="sm">
      <title>{`${documentTitle} · RankZero`}</title>
      <Title order={1} size="h2">
        {title}
      </Title>
      {children && <Group gap="xs">{children}</Group>}
    </Group>
  )
}
