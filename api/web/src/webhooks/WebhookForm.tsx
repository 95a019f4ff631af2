/** The form for a webhook, a new one or one that is edited. */
import { Button, Checkbox, Group, Modal, Stack, Textarea, TextInput } from "@mantine/core"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"

import { api, data } from "../api/client"
import type { SignedWebhook, Webhook } from "../api/types"
import { ErrorNote } from "../parts/ErrorNote"
import { notices } from "../parts/notices"
import { webhookKeys } from "./queries"
import { draftOf, settingOf, TOPIC_NAMES, TOPICS, type Draft } from "./setting"

interface WebhookFormProps {
  /** What is edited, or was last: it stays on the screen while the dialog closes. */
  edited: Webhook | "new"
  opened: boolean
  /** A new one has its key with it. */
  onSigned: (webhook: SignedWebhook) => void
  onClose: () => void
}

export function WebhookForm({ edited, opened, onSigned, onClose }: WebhookFormProps) {
  const webhook = edited === "new" ? undefined : edited
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={webhook ? `Webhook ${webhook.id}` : "New webhook"}
      centered
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <Form webhook={webhook} onSigned={onSigned} onClose={onClose} />
    </Modal>
  )
}

interface FormProps {
  webhook: Webhook | undefined
  onSigned: (webhook: SignedWebhook) => void
  onClose: () => void
}

function Form({ webhook, onSigned, onClose }: FormProps) {
  const client = useQueryClient()
  const [draft, setDraft] = useState(() => draftOf(webhook))
  const change = (changes: Partial<Draft>) => setDraft({ ...draft, ...changes })
  const { setting, problem } = settingOf(draft)
  const save = useMutation({
    mutationFn: async (body: NonNullable<typeof setting>) => {
      if (!webhook) {
        onSigned(await data(api.POST("/webhooks", { body })))
        return
      }
      const params = { path: { webhook_id: webhook.id } }
      await data(api.PATCH("/webhooks/{webhook_id}", { params, body }))
      notices.done(`Webhook ${webhook.id} is changed.`)
      onClose()
    },
    onSuccess: () => void client.invalidateQueries({ queryKey: webhookKeys.list }),
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (setting) save.mutate(setting)
      }}
    >
      <Stack gap="sm">
        <TextInput
          label="URL"
          description="http or https; it must be a public address, unless the operator allows it"
          type="url"
          required
          data-autofocus
          value={draft.url}
          onChange={(event) => change({ url: event.currentTarget.value })}
        />
        <Checkbox.Group
          label="Topics"
          description="None of them stands for all"
          value={draft.topics}
          onChange={(chosen) => change({ topics: TOPIC_NAMES.filter((topic) => chosen.includes(topic)) })}
        >
          <Stack gap={6} mt={6}>
            {TOPIC_NAMES.map((topic) => (
              <Checkbox key={topic} size="xs" value={topic} label={topic} description={TOPICS[topic]} />
            ))}
          </Stack>
        </Checkbox.Group>
        <Textarea
          label="Labels"
          description="Only of jobs that have all of these: key=value, one a line"
          rows={2}
          error={problem}
          value={draft.labels}
          onChange={(event) => change({ labels: event.currentTarget.value })}
        />
        <TextInput
          label="Description"
          maxLength={255}
          value={draft.description}
          onChange={(event) => change({ description: event.currentTarget.value })}
        />
        <Checkbox
          label="Enabled"
          description={
            webhook?.enabled && !draft.enabled ? "What it was not told yet is given up" : "It is told what happens"
          }
          checked={draft.enabled}
          onChange={(event) => change({ enabled: event.currentTarget.checked })}
        />
        {save.error && <ErrorNote error={save.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" loading={save.isPending}>
            {webhook ? "Save" : "Add webhook"}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
