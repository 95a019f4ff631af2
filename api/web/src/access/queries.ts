/** What the page about access asks of the API. */
import { infiniteQueryOptions } from "@tanstack/react-query"

import { api, data } from "../api/client"
import { byPages } from "../api/pages"

export const accessKeys = {
  tokens: ["access", "tokens"],
  users: ["access", "users"],
  secrets: ["access", "secrets"],
  audit: ["access", "audit"],
} as const

/** Tokens of one user, or without one all that may be seen. */
export function tokensQuery(user: string | undefined) {
  return infiniteQueryOptions({
    queryKey: [...accessKeys.tokens, user],
    queryFn: ({ pageParam, signal }) =>
      data(api.GET("/tokens", { params: { query: { user, cursor: pageParam } }, signal })),
    ...byPages,
  })
}

export function usersQuery() {
  return infiniteQueryOptions({
    queryKey: accessKeys.users,
    queryFn: ({ pageParam, signal }) =>
      data(api.GET("/users", { params: { query: { cursor: pageParam, size: 200 } }, signal })),
    ...byPages,
  })
}

export function secretsQuery() {
  return infiniteQueryOptions({
    queryKey: accessKeys.secrets,
    queryFn: ({ pageParam, signal }) => data(api.GET("/secrets", { params: { query: { cursor: pageParam } }, signal })),
    ...byPages,
  })
}

export interface AuditFilters {
  actor?: string
  action?: string
  subject?: string
}

export function auditQuery(filters: AuditFilters) {
  return infiniteQueryOptions({
    queryKey: [...accessKeys.audit, filters],
    queryFn: ({ pageParam, signal }) =>
      data(api.GET("/audit", { params: { query: { ...filters, cursor: pageParam } }, signal })),
    ...byPages,
  })
}
