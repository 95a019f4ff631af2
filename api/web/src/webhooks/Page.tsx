/** Webhooks: URLs that are told of what happens to jobs, and what became of each message to them. */
import { Button, Text } from "@mantine/core"
import { useInfiniteQuery } from "@tanstack/react-query"
import { useState } from "react"
import { useSearchParams } from "wouter"

import type { SignedWebhook, Webhook } from "../api/types"
import { Empty } from "../parts/Empty"
import { Paged } from "../parts/Paged"
import { PageTitle } from "../parts/PageTitle"
import { ShownOnce } from "../parts/ShownOnce"
import { useRights } from "../session/rights"
import { Deliveries } from "./Deliveries"
import { webhooksQuery } from "./queries"
import { WebhookForm } from "./WebhookForm"
import { WebhookTable } from "./WebhookTable"

export default function WebhooksPage() {
  const { isAdmin } = useRights()
  return isAdmin ? (
    <Webhooks />
  ) : (
    <>
      <PageTitle title="Webhooks" documentTitle="Webhooks" />
      <Empty title="Webhooks are for admins" />
    </>
  )
}

function Webhooks() {
  const webhooks = useInfiniteQuery(webhooksQuery())
  const [params, setParams] = useSearchParams()
  /** What is edited, or was last: a webhook, or a new one. */
  const [edited, setEdited] = useState<Webhook | "new">("new")
  const [isEditing, setIsEditing] = useState(false)
  const edit = (webhook: Webhook | "new") => {
    setEdited(webhook)
    setIsEditing(true)
  }
  const [signed, setSigned] = useState<SignedWebhook>()
  const shownId = Number(params.get("id"))
  const shown = webhooks.data?.pages.flatMap(({ items }) => items).find(({ id }) => id === shownId)
  return (
    <>
      <PageTitle title="Webhooks" documentTitle="Webhooks">
        <Button size="xs" onClick={() => edit("new")}>
          New webhook
        </Button>
      </PageTitle>
      <Text size="sm" c="dimmed" mb="sm" maw={720}>
        A URL that is told of what happens to jobs, in messages that are signed with its own key. A message that fails
        is tried again for some 28 hours.
      </Text>
      <Paged query={webhooks} what="webhooks" none="No webhooks so far">
        {(items) => (
          <WebhookTable
            webhooks={items}
            shown={shown?.id}
            onEdit={edit}
            onSigned={setSigned}
            onDeliveries={(id) => setParams(id === shown?.id ? {} : { id: String(id) })}
          />
        )}
      </Paged>
      {shown && <Deliveries key={shown.id} webhook={shown} />}
      <WebhookForm
        edited={edited}
        opened={isEditing}
        onSigned={(made) => {
          setIsEditing(false)
          setSigned(made)
        }}
        onClose={() => setIsEditing(false)}
      />
      <ShownOnce
        what="key"
        title={`Key of webhook ${signed?.id ?? ""}`}
        text={signed?.key}
        onClose={() => setSigned(undefined)}
      >
        Its receiver verifies with it that messages come from this service.
      </ShownOnce>
    </>
  )
}
