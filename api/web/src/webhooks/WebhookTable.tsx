/** The webhooks, and what can be done with each. */
import { Button, Group, Table, Text } from "@mantine/core"
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"

import { api, data } from "../api/client"
import type { SignedWebhook, Webhook } from "../api/types"
import { Confirm } from "../parts/Confirm"
import { notices } from "../parts/notices"
import { ScrolledTable } from "../parts/ScrolledTable"
import { Ago } from "../parts/Time"
import { webhookKeys } from "./queries"

interface WebhookTableProps {
  webhooks: Webhook[]
  /** The one whose deliveries are shown. */
  shown: number | undefined
  onEdit: (webhook: Webhook) => void
  onSigned: (webhook: SignedWebhook) => void
  onDeliveries: (id: number) => void
}

type Question = { verb: "rotate" | "delete"; webhook: Webhook }

export function WebhookTable({ webhooks, shown, onEdit, onSigned, onDeliveries }: WebhookTableProps) {
  const client = useQueryClient()
  const [asked, setAsked] = useState<Question>()
  const refresh = () => void client.invalidateQueries({ queryKey: webhookKeys.all })
  const test = useMutation({
    mutationFn: ({ id }: Webhook) =>
      data(api.POST("/webhooks/{webhook_id}/test", { params: { path: { webhook_id: id } } })),
    onSuccess: (_, { id }) => {
      notices.done(`A test is on its way to webhook ${id}.`)
      if (id !== shown) onDeliveries(id)
    },
    onError: (error) => notices.failed(error.message),
    onSettled: refresh,
  })
  return (
    <>
      <ScrolledTable label="Webhooks">
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">URL</Table.Th>
            <Table.Th scope="col">State</Table.Th>
            <Table.Th scope="col">Topics</Table.Th>
            <Table.Th scope="col">Labels</Table.Th>
            <Table.Th scope="col">Added</Table.Th>
            <Table.Th scope="col">Change</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {webhooks.map((webhook) => (
            <Table.Tr key={webhook.id}>
              <Table.Th scope="row" fw={500} maw={340} style={{ overflowWrap: "anywhere" }}>
                {webhook.url}
                {webhook.description !== null && (
                  <Text size="xs" c="dimmed">
                    {webhook.description}
                  </Text>
                )}
              </Table.Th>
              <Table.Td>{webhook.enabled ? "enabled" : "disabled"}</Table.Td>
              <Table.Td>{webhook.topics.length === 0 ? "all" : webhook.topics.join(", ")}</Table.Td>
              <Table.Td>{labelsOf(webhook) || "of all jobs"}</Table.Td>
              <Table.Td>
                <Ago at={webhook.created_at} />
                {webhook.created_by !== null && ` by ${webhook.created_by}`}
              </Table.Td>
              <Table.Td>
                <Group gap={6} wrap="nowrap" role="group" aria-label={`Webhook ${webhook.id}`}>
                  <Verb
                    text={webhook.id === shown ? "Hide deliveries" : "Deliveries"}
                    onClick={() => onDeliveries(webhook.id)}
                  />
                  <Verb
                    text="Test"
                    isBusy={test.isPending && test.variables.id === webhook.id}
                    onClick={() => test.mutate(webhook)}
                  />
                  <Verb text="Edit" onClick={() => onEdit(webhook)} />
                  <Verb text="Another key" onClick={() => setAsked({ verb: "rotate", webhook })} />
                  <Verb text="Delete" onClick={() => setAsked({ verb: "delete", webhook })} />
                </Group>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </ScrolledTable>
      {asked?.verb === "rotate" && (
        <Rotate webhook={asked.webhook} onSigned={onSigned} onClose={() => setAsked(undefined)} />
      )}
      {asked?.verb === "delete" && <Delete webhook={asked.webhook} onClose={() => setAsked(undefined)} />}
    </>
  )
}

function labelsOf({ labels }: Webhook): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(", ")
}

function Verb({ text, isBusy, onClick }: { text: string; isBusy?: boolean; onClick: () => void }) {
  return (
    <Button variant="default" size="compact-xs" loading={isBusy} onClick={onClick}>
      {text}
    </Button>
  )
}

interface RotateProps {
  webhook: Webhook
  onSigned: (webhook: SignedWebhook) => void
  onClose: () => void
}

function Rotate({ webhook, onSigned, onClose }: RotateProps) {
  const rotate = useMutation({
    mutationFn: () => data(api.POST("/webhooks/{webhook_id}/rotate", { params: { path: { webhook_id: webhook.id } } })),
    onSuccess: onSigned,
    onError: (error) => notices.failed(error.message),
    onSettled: onClose,
  })
  return (
    <Confirm
      opened
      title={`Another key for webhook ${webhook.id}?`}
      verb="Make another key"
      isBusy={rotate.isPending}
      onConfirm={() => rotate.mutate()}
      onClose={onClose}
    >
      The key it has signs no message any more, from the next try on. {webhook.url} refuses them until it knows the new
      one.
    </Confirm>
  )
}

function Delete({ webhook, onClose }: { webhook: Webhook; onClose: () => void }) {
  const client = useQueryClient()
  const remove = useMutation({
    mutationFn: () => api.DELETE("/webhooks/{webhook_id}", { params: { path: { webhook_id: webhook.id } } }),
    onSuccess: () => notices.done(`Webhook ${webhook.id} is deleted.`),
    onError: (error) => notices.failed(error.message),
    onSettled: () => {
      onClose()
      void client.invalidateQueries({ queryKey: webhookKeys.list })
    },
  })
  return (
    <Confirm
      opened
      title={`Delete webhook ${webhook.id}?`}
      verb="Delete"
      isBusy={remove.isPending}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      {webhook.url} is told nothing any more, and what it was not told yet is given up.
    </Confirm>
  )
}
