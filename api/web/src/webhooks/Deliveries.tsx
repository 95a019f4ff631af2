/** What one webhook was told or is to be told: where each message is, all of its tries, its body, and sending it again. */
import { Anchor, Box, Button, Code, Group, Table, Text, Title } from "@mantine/core"
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { Fragment, useState } from "react"
import { Link } from "wouter"

import { api, data } from "../api/client"
import type { Delivery, Webhook } from "../api/types"
import { count } from "../format/numbers"
import { notices } from "../parts/notices"
import { Paged } from "../parts/Paged"
import { ScrolledTable } from "../parts/ScrolledTable"
import { Ago, At } from "../parts/Time"
import { deliveriesQuery, webhookKeys } from "./queries"

const STATES: Record<Delivery["status"], string> = {
  pending: "pending",
  delivered: "delivered",
  given_up: "given up",
}

export function Deliveries({ webhook }: { webhook: Webhook }) {
  const deliveries = useInfiniteQuery(deliveriesQuery(webhook.id))
  return (
    <Box component="section" mt="lg">
      <Title order={2} size="h4" mb="xs" style={{ overflowWrap: "anywhere" }}>
        Deliveries to {webhook.url}
      </Title>
      <Paged query={deliveries} what="deliveries" none="It was told nothing so far">
        {(items) => <DeliveryTable deliveries={items} webhook={webhook.id} />}
      </Paged>
    </Box>
  )
}

function DeliveryTable({ deliveries, webhook }: { deliveries: Delivery[]; webhook: number }) {
  const client = useQueryClient()
  const [opened, setOpened] = useState<number>()
  const again = useMutation({
    mutationFn: (id: number) =>
      data(
        api.POST("/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver", {
          params: { path: { webhook_id: webhook, delivery_id: id } },
        }),
      ),
    onSuccess: () => notices.done("The message is on its way once more."),
    onError: (error) => notices.failed(error.message),
    onSettled: () => void client.invalidateQueries({ queryKey: webhookKeys.deliveries(webhook) }),
  })
  return (
    <ScrolledTable label="Deliveries">
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Written</Table.Th>
          <Table.Th scope="col">Topic</Table.Th>
          <Table.Th scope="col">Job</Table.Th>
          <Table.Th scope="col">State</Table.Th>
          <Table.Th scope="col">Tries</Table.Th>
          <Table.Th scope="col">Last answer</Table.Th>
          <Table.Th scope="col">More</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {deliveries.map((delivery) => (
          <Fragment key={delivery.id}>
            <Table.Tr>
              <Table.Td>
                <At at={delivery.created_at} />
              </Table.Td>
              <Table.Td>{delivery.topic}</Table.Td>
              <Table.Td>
                {delivery.job_id === null ? (
                  "–"
                ) : (
                  <Anchor component={Link} href={`/jobs/${delivery.job_id}`} inherit>
                    {delivery.job_id}
                  </Anchor>
                )}
              </Table.Td>
              <Table.Td>
                {STATES[delivery.status]}
                {delivery.due_at !== null && (
                  <Text size="xs" c="dimmed">
                    next try <Ago at={delivery.due_at} />
                  </Text>
                )}
              </Table.Td>
              <Table.Td>{count(delivery.log.length)}</Table.Td>
              <Table.Td>{answerOf(delivery.log.at(-1))}</Table.Td>
              <Table.Td>
                <Group gap={6} wrap="nowrap" role="group" aria-label={`Delivery ${delivery.id}`}>
                  <Button
                    variant="default"
                    size="compact-xs"
                    aria-expanded={opened === delivery.id}
                    onClick={() => setOpened(opened === delivery.id ? undefined : delivery.id)}
                  >
                    {opened === delivery.id ? "Less" : "Details"}
                  </Button>
                  <Button
                    variant="default"
                    size="compact-xs"
                    loading={again.isPending && again.variables === delivery.id}
                    onClick={() => again.mutate(delivery.id)}
                  >
                    Deliver again
                  </Button>
                </Group>
              </Table.Td>
            </Table.Tr>
            {opened === delivery.id && (
              <Table.Tr>
                <Table.Td colSpan={7}>
                  <Details delivery={delivery} />
                </Table.Td>
              </Table.Tr>
            )}
          </Fragment>
        ))}
      </Table.Tbody>
    </ScrolledTable>
  )
}

function Details({ delivery }: { delivery: Delivery }) {
  return (
    <>
      <Text size="xs" c="dimmed" mb={4}>
        Message {delivery.message_id}
      </Text>
      {delivery.log.length > 0 && (
        <ol style={{ marginTop: 0 }}>
          {delivery.log.map((each, index) => (
            <li key={index}>
              <At at={each.at} />: {answerOf(each)}, after {count(each.took_ms)} ms
            </li>
          ))}
        </ol>
      )}
      <Code block tabIndex={0} aria-label="Body of the message" mah={320} style={{ overflow: "auto" }}>
        {JSON.stringify(delivery.payload, null, 2)}
      </Code>
    </>
  )
}

/** What came of a try, in words. */
function answerOf(tried: Delivery["log"][number] | undefined): string {
  if (!tried) return "none yet"
  const status = tried.status === null ? "no answer" : `status ${tried.status}`
  return tried.error === null ? status : `${status}: ${tried.error}`
}
