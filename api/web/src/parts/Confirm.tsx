/** A question before something that costs work. */
import { Button, Group, Modal, Stack, Text } from "@mantine/core"
import type { ReactNode } from "react"

interface ConfirmProps {
  opened: boolean
  title: string
  children: ReactNode
  /** What the button says: the verb itself, never "OK". */
  verb: string
  isBusy?: boolean
  onConfirm: () => void
  onClose: () => void
}

export function Confirm({ opened, title, children, verb, isBusy, onConfirm, onClose }: ConfirmProps) {
  return (
    <Modal opened={opened} onClose={onClose} title={title} centered closeButtonProps={{ "aria-label": "Close" }}>
      <Stack>
        <Text component="div" size="sm">
          {children}
        </Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Keep it
          </Button>
          <Button color="red.8" loading={isBusy} onClick={onConfirm}>
            {verb}
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}
