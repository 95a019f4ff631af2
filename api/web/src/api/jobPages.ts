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

/** Put jobs as they are now in their places in every kept list; one that a list's states leave out goes from it. */
export function keepInPages(client: QueryClient, changed: ReadonlyMap<number, (before: Job) => Job>): void {
  for (const { queryKey } of client.getQueryCache().findAll({ queryKey: PAGES })) {
    const { state } = queryKey[PAGES.length] as JobFilters
    client.setQueryData<JobPages>(queryKey, (pages) => pages && patched(pages, changed, state))
  }
}

function patched(
  pages: JobPages,
  changed: ReadonlyMap<number, (before: Job) => Job>,
  states: readonly State[] | undefined,
): JobPages {
  let isSame = true
  const patchedPages = pages.pages.map((page) => {
    if (!page.items.some(({ id }) => changed.has(id))) return page
    isSame = false
    const items = page.items.map((job) => changed.get(job.id)?.(job) ?? job)
    return { ...page, items: states ? items.filter(({ state }) => states.includes(state)) : items }
  })
  return isSame ? pages : { ...pages, pages: patchedPages }
}
