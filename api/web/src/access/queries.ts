/** What the page about access asks of the API. */
import { infiniteQueryOptions } from "@tanstack/react-query"

import { api, data } from "../api/client"

export const accessKeys = {
  tokens: ["access", "tokens"],
  users: ["access", "users"],
  secrets: ["access", "secrets"],
  audit: ["access", "audit"],
} as const

const FIRST: string | undefined = undefined
const nextOf = ({ next_page }: { next_page?: string | null }) => next_page ?? undefined

/** Tokens of one user, or without one all that may be seen. */
export function tokensQuery(user: string | undefined) {
  return infiniteQueryOptions({
    queryKey: [...accessKeys.tokens, user],
    queryFn: ({ pageParam, signal }) =>
      data(api.GET("/tokens", { params: { query: { user, cursor: pageParam } }, signal })),
    initialPageParam: FIRST,
    getNextPageParam: nextOf,
  })
}

export function usersQuery() {
  return infiniteQueryOptions({
    queryKey: accessKeys.users,
    queryFn: ({ pageParam, signal }) =>
      data(api.GET("/users", { params: { query: { cursor: pageParam, size: 200 } }, signal })),
    initialPageParam: FIRST,
    getNextPageParam: nextOf,
  })
}

export function secretsQuery() {
  return infiniteQueryOptions({
    queryKey: accessKeys.secrets,
    queryFn: ({ pageParam, signal }) => data(api.GET("/secrets", { params: { query: { cursor: pageParam } }, signal })),
    initialPageParam: FIRST,
    getNextPageParam: nextOf,
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
    initialPageParam: FIRST,
    getNextPageParam: nextOf,
  })
}
