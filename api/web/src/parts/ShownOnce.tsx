/** A text that is shown this once, such as a token's: what it is, how to copy it, and that it does not come back. */
import { Button, Group, Modal, Stack, Text } from "@mantine/core"
import type { ReactNode } from "react"

import { CopyText } from "./CopyText"

interface ShownOnceProps {
  /** What it is: `token`, `key`. */
  what: string
  title: string
  text: string | undefined
  children?: ReactNode
  onClose: () => void
}

export function ShownOnce({ what, title, text, children, onClose }: ShownOnceProps) {
  return (
    <Modal
      opened={text !== undefined}
      onClose={onClose}
      title={title}
      centered
      // A slip of the hand must not take away what nobody can show again.
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
    >
      <Stack>
        <Text size="sm">
          Copy this {what} now and keep it safe: it is shown this once, and whoever has it can use it. {children}
        </Text>
        <CopyText text={text ?? ""} label={what} />
        <Group justify="flex-end">
          <Button onClick={onClose}>I have copied it</Button>
        </Group>
      </Stack>
    </Modal>
  )
}
