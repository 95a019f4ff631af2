/** The heading of the table of jobs: what it is ordered by, and how to select all. */
import { flexRender, type ReactTable } from "@tanstack/react-table"

import type { JobSort } from "../api/jobPages"
import type { Job } from "../api/types"
import type { JobTableFeatures } from "./columns"
import classes from "./Jobs.module.css"
import { MOST_SELECTED, type View, type ViewChange } from "./view"

interface JobTableHeadProps {
  table: ReactTable<JobTableFeatures, Job>
  jobs: readonly Job[]
  view: View
  onView: (change: ViewChange, options?: { isStep?: boolean }) => void
}

export function JobTableHead({ table, jobs, view, onView }: JobTableHeadProps) {
  return (
    <div role="rowgroup" className={classes.head}>
      <div role="row" aria-rowindex={1} className={classes.headRow}>
        <div role="columnheader" className={classes.cell} data-area="select">
          <SelectAll jobs={jobs} view={view} onView={onView} />
        </div>
        {table.getFlatHeaders().map((header) => {
          const { meta } = header.column.columnDef
          const title = flexRender(header.column.columnDef.header, header.getContext())
          const { ariaSort, next } = orderBy(meta?.sort, view.sort)
          return (
            <div
              key={header.id}
              role="columnheader"
              aria-sort={ariaSort}
              className={classes.cell}
              data-area={meta?.area}
            >
              {next === undefined ? (
                title
              ) : (
                <button type="button" className={classes.sort} onClick={() => onView({ sort: next }, { isStep: true })}>
                  {title}
                  <span aria-hidden>{ariaSort === "ascending" ? " ↑" : ariaSort === "descending" ? " ↓" : ""}</span>
                </button>
              )}
            </div>
          )
        })}
      </div>
    </div>
  )
}

/** How a column is ordered now, and what a click on its heading makes of that: first the newest, the largest, or A to Z. */
function orderBy(column: "id" | "name" | "priority" | "created_at" | undefined, now: JobSort) {
  if (column === undefined) return {}
  // An age grows as the time of its beginning falls.
  const isTurned = column === "created_at"
  const ascending = isTurned ? (`-${column}` as const) : column
  const descending = isTurned ? column : (`-${column}` as const)
  if (now === ascending) return { ariaSort: "ascending" as const, next: descending }
  if (now === descending) return { ariaSort: "descending" as const, next: ascending }
  return { next: column === "name" || isTurned ? ascending : descending }
}

function SelectAll({ jobs, view, onView }: Omit<JobTableHeadProps, "table">) {
  const offered = jobs.slice(0, MOST_SELECTED)
  const isAll = offered.length > 0 && offered.every(({ id }) => view.selected.has(id))
  return (
    <input
      type="checkbox"
      className={classes.check}
      aria-label={
        jobs.length > MOST_SELECTED ? `Select the first ${MOST_SELECTED} jobs` : "Select all jobs that are loaded"
      }
      checked={isAll}
      onChange={() => onView({ selected: new Set(isAll ? [] : offered.map(({ id }) => id)) })}
    />
  )
}
