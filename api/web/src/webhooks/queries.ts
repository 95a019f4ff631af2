/** What the page about webhooks asks of the API. */
import { infiniteQueryOptions } from "@tanstack/react-query"

import { api, data } from "../api/client"
import { byPages } from "../api/pages"

export const webhookKeys = {
  all: ["webhooks"],
  list: ["webhooks", "list"],
  deliveries: (id: number) => ["webhooks", "deliveries", id],
} as const

/** No event tells of a delivery. */
const POLL_MS = 10_000

export function webhooksQuery() {
  return infiniteQueryOptions({
    queryKey: webhookKeys.list,
    queryFn: ({ pageParam, signal }) =>
      data(api.GET("/webhooks", { params: { query: { cursor: pageParam, size: 200 } }, signal })),
    ...byPages,
  })
}

export function deliveriesQuery(id: number) {
  return infiniteQueryOptions({
    queryKey: webhookKeys.deliveries(id),
    queryFn: ({ pageParam, signal }) =>
      data(
        api.GET("/webhooks/{webhook_id}/deliveries", {
          params: { path: { webhook_id: id }, query: { cursor: pageParam } },
          signal,
        }),
      ),
    ...byPages,
    refetchInterval: POLL_MS,
  })
}
