/** A part of a tab under its own heading. */
import { Group, Title } from "@mantine/core"
import { useId, type ReactNode } from "react"

interface SectionProps {
  title: string
  /** Small controls beside the heading. */
  aside?: ReactNode
  children: ReactNode
}

export function Section({ title, aside, children }: SectionProps) {
  const id = useId()
  return (
    <section aria-labelledby={id} style={{ marginBottom: "var(--mantine-spacing-lg)" }}>
      <Group justify="space-between" mb="xs" gap="xs">
        <Title order={2} size="h4" id={id}>
          {title}
        </Title>
        {aside}
      </Group>
      {children}
    </section>
  )
}
