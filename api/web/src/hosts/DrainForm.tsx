/** The form that drains a host: why, and whether what runs there is to make room. */
import { Button, Checkbox, Group, NativeSelect, Stack, Text, TextInput } from "@mantine/core"
import { useState, type SubmitEvent } from "react"

import type { Host } from "../api/types"
import { count } from "../format/numbers"
import { ErrorNote } from "../parts/ErrorNote"
import { useDrain } from "./verbs"

interface DrainFormProps {
  hosts: readonly Host[]
  /** Null to have it chosen. */
  host: string | null
  onClose: () => void
}

export function DrainForm({ hosts, host: given, onClose }: DrainFormProps) {
  const [chosen, setChosen] = useState(given ?? hosts.find(({ drained_at }) => drained_at === null)?.name ?? "")
  const host = hosts.find(({ name }) => name === chosen)
  const [note, setNote] = useState(host?.drain_note ?? "")
  const [evict, setEvict] = useState(false)
  const drain = useDrain()
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    if (host) drain.mutate({ host: host.name, note, evict }, { onSuccess: onClose })
  }
  return (
    <form onSubmit={submit}>
      <Stack gap="sm">
        {given === null && (
          <NativeSelect
            label="Host"
            data={hosts.map(({ name }) => name)}
            value={chosen}
            onChange={(event) => setChosen(event.currentTarget.value)}
          />
        )}
        <Text size="sm">It gets no new jobs until it is taken back.</Text>
        <TextInput
          label="Note"
          description="Why, for those whose jobs wait for it"
          placeholder="new driver"
          data-autofocus={given !== null || undefined}
          value={note}
          onChange={(event) => setNote(event.currentTarget.value)}
        />
        <Checkbox
          label="Have its jobs stop now"
          description="Otherwise they run to their end"
          checked={evict}
          onChange={(event) => setEvict(event.currentTarget.checked)}
        />
        {host && evict && <Text size="sm">{costInWords(host.running.length)}</Text>}
        {drain.error && <ErrorNote error={drain.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Keep it
          </Button>
          <Button type="submit" loading={drain.isPending} disabled={!host} color={evict ? "red.8" : undefined}>
            {evict ? "Drain and stop its jobs" : "Drain"}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

function costInWords(running: number): string {
  if (running === 0) return "Nothing runs there now."
  const [jobs, they] = running === 1 ? ["1 job saves", "it"] : [`${count(running)} jobs save`, "they"]
  return (
    `${jobs} a checkpoint and wait${running === 1 ? "s" : ""} in the line again, without spending a retry. ` +
    `Where a checkpoint is only on this host, ${they} wait${running === 1 ? "s" : ""} until the host is taken back.`
  )
}
