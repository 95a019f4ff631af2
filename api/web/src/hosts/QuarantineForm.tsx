/** The form that takes a device out of use, with the reason for those who wait for it. */
import { Button, Group, Stack, Text, TextInput } from "@mantine/core"
import { useState } from "react"

import { ErrorNote } from "../parts/ErrorNote"
import { useQuarantine, type DeviceName } from "./verbs"

export function QuarantineForm({ host, device, onClose }: DeviceName & { onClose: () => void }) {
  const [reason, setReason] = useState("")
  const quarantine = useQuarantine()
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (reason.trim() !== "") quarantine.mutate({ host, device, reason }, { onSuccess: onClose })
      }}
    >
      <Stack gap="sm">
        <Text size="sm">It is handed out no more until somebody releases it. A run that has it goes on.</Text>
        <TextInput
          label="Reason"
          description="For those whose jobs wait for it, and for whoever releases it"
          placeholder="new riser"
          required
          data-autofocus
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        {quarantine.error && <ErrorNote error={quarantine.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Keep it
          </Button>
          <Button type="submit" loading={quarantine.isPending}>
            Quarantine
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
