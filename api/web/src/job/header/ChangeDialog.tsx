/** Changes a job's priority and labels. */
import { Button, CloseButton, Fieldset, Group, Modal, Stack, TextInput } from "@mantine/core"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"

import type { Job } from "../../api/types"
import { change, keepJobs } from "../../api/verbs"
import { ErrorNote } from "../../parts/ErrorNote"
import { notices } from "../../parts/notices"
import { labelChanges, labelFields, type LabelField } from "./labels"

/** It begins with the job as it is when the dialog opens; only what is changed here is sent. */
export function ChangeDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const client = useQueryClient()
  const [before] = useState(job)
  const [priority, setPriority] = useState(String(job.priority))
  const [labels, setLabels] = useState(() => labelFields(job.labels))
  const save = useMutation({
    mutationFn: () =>
      change(job.id, {
        ...(Number(priority) === before.priority ? {} : { priority: Number(priority) }),
        labels: labelChanges(before.labels, labels),
      }),
    onSuccess: (answered) => {
      keepJobs(client, [answered])
      notices.done(`Job ${job.id} is changed`)
      onClose()
    },
  })
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Priority and labels of job ${job.id}`}
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          save.mutate()
        }}
      >
        <Stack gap="sm">
          <TextInput
            data-autofocus
            label="Priority"
            description="0 to 100; higher starts first"
            type="number"
            min={0}
            max={100}
            required
            value={priority}
            onChange={({ currentTarget }) => setPriority(currentTarget.value)}
          />
          <LabelInputs labels={labels} onChange={setLabels} />
          {save.error && <ErrorNote error={save.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Leave as it is
            </Button>
            <Button type="submit" loading={save.isPending}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}

function LabelInputs({ labels, onChange }: { labels: LabelField[]; onChange: (labels: LabelField[]) => void }) {
  const edit = (id: number, changes: Partial<LabelField>) =>
    onChange(labels.map((each) => (each.id === id ? { ...each, ...changes } : each)))
  const add = () => onChange([...labels, { id: 1 + Math.max(-1, ...labels.map(({ id }) => id)), key: "", value: "" }])
  return (
    <Fieldset legend="Labels">
      <Stack gap="xs">
        {labels.map(({ id, key, value }, index) => (
          <Group key={id} gap="xs" wrap="nowrap">
            <TextInput
              aria-label={`Key of label ${index + 1}`}
              placeholder="key"
              value={key}
              onChange={({ currentTarget }) => edit(id, { key: currentTarget.value })}
            />
            <TextInput
              aria-label={`Value of label ${index + 1}`}
              placeholder="value"
              value={value}
              onChange={({ currentTarget }) => edit(id, { value: currentTarget.value })}
            />
            <CloseButton
              aria-label={`Remove label ${index + 1}${key && `, ${key}`}`}
              onClick={() => onChange(labels.filter((each) => each.id !== id))}
            />
          </Group>
        ))}
        <Button size="xs" variant="default" onClick={add} style={{ alignSelf: "start" }}>
          Add a label
        </Button>
      </Stack>
    </Fieldset>
  )
}
