/** Lists of jobs, page by page, and how one job that has changed is put in its place in them. */
import type { InfiniteData, QueryClient } from "@tanstack/react-query"

import { keys } from "./queries"
import type { Job, State } from "./types"

/** What a list of jobs is asked for; the service filters and orders. */
export interface JobFilters {
  state?: State[]
  label?: string[]
  name?: string
  user?: string
  priority?: number
  recipe?: string
  model?: string
  host?: string
  sort: JobSort
}

export type JobSort = "id" | "-id" | "priority" | "-priority" | "name" | "-name" | "created_at" | "-created_at"

export interface JobPage {
  items: Job[]
  next_page?: string | null
}

export type JobPages = InfiniteData<JobPage, string | undefined>

const PAGES = [...keys.jobs, "pages"] as const

export function jobPagesKey(filters: JobFilters) {
  return [...PAGES, filters] as const
}

type Changes = ReadonlyMap<number, (before: Job) => Job>

/**
 * Put jobs as they are now in their places in every kept list; one that a list's states leave out goes from it. A list
 * in which one has another place now is read anew, as only the service knows the order.
 */
export function keepInPages(client: QueryClient, changed: Changes): void {
  for (const { queryKey } of client.getQueryCache().findAll({ queryKey: PAGES })) {
    const { state, sort } = queryKey[PAGES.length] as JobFilters
    const before = client.getQueryData<JobPages>(queryKey)
    if (before === undefined) continue
    client.setQueryData<JobPages>(queryKey, patched(before, changed, state))
    if (isMoved(before, changed, sort)) void client.invalidateQueries({ queryKey, exact: true })
  }
}

/** Whether one of a list differs from before in what the list is ordered by. */
function isMoved(pages: JobPages, changed: Changes, sort: JobSort): boolean {
  const field = sort.replace("-", "") as "id" | "priority" | "name" | "created_at"
  return pages.pages.some(({ items }) =>
    items.some((job) => {
      const now = changed.get(job.id)?.(job)
      return now !== undefined && now[field] !== job[field]
    }),
  )
}

function patched(pages: JobPages, changed: Changes, states: readonly State[] | undefined): JobPages {
  const patchedPages = pages.pages.map((page) => {
    if (!page.items.some(({ id }) => changed.has(id))) return page
    const items = page.items.map((job) => changed.get(job.id)?.(job) ?? job)
    return { ...page, items: states ? items.filter(({ state }) => states.includes(state)) : items }
  })
  return { ...pages, pages: patchedPages }
}

/**
 * A list whose first page was read anew, what it has lost to the page below it included: no cursor has moved. Null where
 * more has come than a page holds, so that all has to be read anew.
 */
export function withFirstPage(pages: JobPages, fresh: JobPage): JobPages | null {
  const [first, ...others] = pages.pages
  if (first === undefined) return null
  const freshIds = new Set(fresh.items.map(({ id }) => id))
  const isWhole = !fresh.next_page || first.items.length === 0 || first.items.some(({ id }) => freshIds.has(id))
  if (!isWhole) return null
  const left = fresh.next_page ? first.items.filter(({ id }) => !freshIds.has(id)) : []
  return { ...pages, pages: [{ ...first, items: [...fresh.items, ...left] }, ...others] }
}
