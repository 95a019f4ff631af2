/** The questions before a host or device is taken out of use: which of them is open is the page's to say. */
import { Text } from "@mantine/core"

import type { Host } from "../api/types"
import { Confirm } from "../parts/Confirm"
import { ErrorNote } from "../parts/ErrorNote"
import { DrainDialog } from "./DrainDialog"
import { QuarantineDialog } from "./QuarantineDialog"
import { useRemove } from "./verbs"

/** What was asked for; a drain without a host has the host chosen in the dialog. */
export type AskVerb =
  | { verb: "drain"; host: string | null }
  | { verb: "remove"; host: string }
  | { verb: "quarantine"; host: string; device: string }

export interface DialogsProps {
  asked: AskVerb | null
  hosts: readonly Host[]
  onClose: () => void
}

export function Dialogs({ asked, hosts, onClose }: DialogsProps) {
  switch (asked?.verb) {
    case undefined:
      return null
    case "drain":
      return <DrainDialog hosts={hosts} host={asked.host} onClose={onClose} />
    case "remove":
      return <RemoveDialog host={asked.host} onClose={onClose} />
    case "quarantine":
      return <QuarantineDialog host={asked.host} device={asked.device} onClose={onClose} />
  }
}

function RemoveDialog({ host, onClose }: { host: string; onClose: () => void }) {
  const remove = useRemove()
  return (
    <Confirm
      opened
      title={`Remove ${host}`}
      verb="Remove"
      isBusy={remove.isPending}
      onConfirm={() => remove.mutate(host, { onSuccess: onClose })}
      onClose={onClose}
    >
      <Text size="sm" mb="xs">
        For a host that is gone for good: it is listed no more, and no job waits for its devices. The history of its
        jobs stays, and a worker that registers under its name brings it back.
      </Text>
      {remove.error && <ErrorNote error={remove.error} />}
    </Confirm>
  )
}
