import { QueryClient } from "@tanstack/react-query"
import { expect, test } from "vitest"

import { jobPagesKey, keepInPages, withFirstPage, type JobPages } from "./jobPages"
import type { Job, State } from "./types"

function job(id: number, state: State = "running"): Job {
  return { id, state, intent: "run" } as Job
}

function pagesOf(...pages: number[][]): JobPages {
  return {
    pages: pages.map((ids, index) => ({
      items: ids.map((id) => job(id)),
      next_page: index < pages.length - 1 ? String(index) : null,
    })),
    pageParams: pages.map((_, index) => (index === 0 ? undefined : String(index - 1))),
  }
}

function idsIn(pages: JobPages | null | undefined) {
  return pages?.pages.map(({ items }) => items.map(({ id }) => id))
}

test("a changed job takes its place in every list, and leaves one whose states it has left", () => {
  const client = new QueryClient()
  const [all, running] = [jobPagesKey({ sort: "-id" }), jobPagesKey({ sort: "-id", state: ["running"] })]
  client.setQueryData(all, pagesOf([4, 3], [2, 1]))
  client.setQueryData(running, pagesOf([4, 3], [2, 1]))
  const untouched = client.getQueryData<JobPages>(all)?.pages[0]
  keepInPages(client, new Map([[2, () => job(2, "failed")]]))
  expect(client.getQueryData<JobPages>(all)?.pages[1]?.items[0]?.state).toBe("failed")
  expect(client.getQueryData<JobPages>(all)?.pages[0]).toBe(untouched)
  expect(idsIn(client.getQueryData<JobPages>(running))).toEqual([[4, 3], [1]])
})

test("new jobs come to the top of a list, and push none out of it", () => {
  const fresh = { items: [6, 5, 4].map((id) => job(id)), next_page: "x" }
  const after = withFirstPage(pagesOf([4, 3, 2], [1]), fresh)
  expect(idsIn(after)).toEqual([[6, 5, 4, 3, 2], [1]])
  expect(after?.pages[0]?.next_page).toBe("0")
})

test("where more has come than a page holds, all is to be read anew", () => {
  const fresh = { items: [9, 8, 7].map((id) => job(id)), next_page: "x" }
  expect(withFirstPage(pagesOf([3, 2], [1]), fresh)).toBeNull()
})

test("the first job of all comes to an empty list", () => {
  expect(idsIn(withFirstPage(pagesOf([]), { items: [job(1)], next_page: null }))).toEqual([[1]])
})

test("a list is read anew where a job has another place in its order, and no other is", () => {
  const client = new QueryClient()
  const [newest, byName, byPriority] = (["-id", "name", "-priority"] as const).map((sort) => jobPagesKey({ sort }))
  for (const key of [newest, byName, byPriority]) client.setQueryData(key ?? [], pagesOf([4, 3], [2, 1]))
  keepInPages(client, new Map([[2, (before: Job) => ({ ...before, priority: 90 })]]))
  const isStale = [newest, byName, byPriority].map((key) => client.getQueryState(key ?? [])?.isInvalidated)
  expect(isStale).toEqual([false, false, true])
})
