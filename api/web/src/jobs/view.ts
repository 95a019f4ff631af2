/** What of the jobs a person looks at, as the address has it: states, search, order, selection. */
import { useSearchParams } from "wouter"

import { jobIdsIn } from "../api/jobId"
import type { JobFilters, JobSort } from "../api/jobPages"
import { STATES } from "../api/states"
import type { State } from "../api/types"
import { filtersOf } from "./search"

export interface View {
  states: readonly State[]
  search: string
  sort: JobSort
  selected: ReadonlySet<number>
}

const DEFAULT_SORT: JobSort = "-id"
const SORTS: readonly JobSort[] = ["id", "-id", "priority", "-priority", "name", "-name", "created_at", "-created_at"]

/** An address holds so many numbers; whoever wants more jobs at once narrows the filters and repeats. */
export const MOST_SELECTED = 500

export function readView(params: URLSearchParams): View {
  const sort = params.get("sort") as JobSort
  return {
    states: STATES.filter((state) => params.getAll("state").includes(state)),
    search: params.get("q") ?? "",
    sort: SORTS.includes(sort) ? sort : DEFAULT_SORT,
    selected: new Set(jobIdsIn(params.get("selected")).slice(0, MOST_SELECTED)),
  }
}

/** The parameters of an address with another view; those of others stay. */
export function writeView(params: URLSearchParams, changes: Partial<View>): URLSearchParams {
  const view = { ...readView(params), ...changes }
  const written = new URLSearchParams(params)
  for (const name of ["state", "q", "sort", "selected"]) written.delete(name)
  for (const state of view.states) written.append("state", state)
  if (view.search !== "") written.set("q", view.search)
  if (view.sort !== DEFAULT_SORT) written.set("sort", view.sort)
  const ids = [...view.selected].slice(0, MOST_SELECTED)
  if (ids.length > 0) written.set("selected", ids.join(","))
  return written
}

export function filtersIn(view: View): JobFilters {
  const states = view.states.length > 0 ? { state: [...view.states] } : {}
  return { ...filtersOf(view.search), ...states, sort: view.sort }
}

/** Whether all jobs are looked at. */
export function isUnfiltered(view: View): boolean {
  return view.states.length === 0 && view.search.trim() === ""
}

/** Changes of a view, or how they come of the view as it then is. */
export type ViewChange = Partial<View> | ((view: View) => Partial<View>)

/** The view, and how to change it: what a person might go back to is a step of its own in the browser's history. */
export function useView(): [View, (change: ViewChange, options?: { isStep?: boolean }) => void] {
  const [params, setParams] = useSearchParams()
  const change = (changes: ViewChange, { isStep = false } = {}) =>
    setParams((before) => writeView(before, typeof changes === "function" ? changes(readView(before)) : changes), {
      replace: !isStep,
    })
  return [readView(params), change]
}
