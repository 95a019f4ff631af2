/** The questions before a host or device is taken out of use: which of them is open is the page's to say. */
import { Modal, Text } from "@mantine/core"

import type { Host } from "../api/types"
import { Confirm } from "../parts/Confirm"
import { ErrorNote } from "../parts/ErrorNote"
import { DrainForm } from "./DrainForm"
import { QuarantineForm } from "./QuarantineForm"
import { useRemove } from "./verbs"

/** What was asked for; a drain without a host has the host chosen in the dialog. */
export type AskVerb =
  | { verb: "drain"; host: string | null }
  | { verb: "remove"; host: string }
  | { verb: "quarantine"; host: string; device: string }

interface DialogsProps {
  /** What was asked for last: it stays on the screen while its dialog closes. */
  asked: AskVerb | null
  /** A dialog stays mounted while it is closed, so that the focus returns to where it came from. */
  opened: boolean
  hosts: readonly Host[]
  onClose: () => void
}

export function Dialogs({ asked, opened, hosts, onClose }: DialogsProps) {
  return (
    <>
      <Modal
        opened={opened && asked?.verb !== "remove"}
        onClose={onClose}
        title={titleOf(asked)}
        centered
        closeButtonProps={{ "aria-label": "Close" }}
      >
        {asked?.verb === "drain" && <DrainForm hosts={hosts} host={asked.host} onClose={onClose} />}
        {asked?.verb === "quarantine" && <QuarantineForm host={asked.host} device={asked.device} onClose={onClose} />}
      </Modal>
      <RemoveDialog host={asked?.host ?? ""} opened={opened && asked?.verb === "remove"} onClose={onClose} />
    </>
  )
}

function titleOf(asked: AskVerb | null): string {
  if (asked?.verb === "drain") return asked.host === null ? "Drain a host" : `Drain ${asked.host}`
  return asked?.verb === "quarantine" ? `Quarantine ${asked.device} of ${asked.host}` : ""
}

function RemoveDialog({ host, opened, onClose }: { host: string; opened: boolean; onClose: () => void }) {
  const remove = useRemove()
  const close = () => {
    remove.reset()
    onClose()
  }
  return (
    <Confirm
      opened={opened}
      title={`Remove ${host}`}
      verb="Remove"
      isBusy={remove.isPending}
      onConfirm={() => remove.mutate(host, { onSuccess: close })}
      onClose={close}
    >
      <Text size="sm" mb="xs">
        For a host that is gone for good: it is listed no more, and no job waits for its devices. The history of its
        jobs stays, and a worker that registers under its name brings it back.
      </Text>
      {remove.error && <ErrorNote error={remove.error} />}
    </Confirm>
  )
}
