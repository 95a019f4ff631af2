/** One row of the table of jobs. It is drawn anew only where its own job, place or marks change. */
import { flexRender, type Row } from "@tanstack/react-table"
import { memo } from "react"

import type { Job } from "../api/types"
import type { JobTableFeatures } from "./columns"
import classes from "./Jobs.module.css"

interface JobRowProps {
  row: Row<JobTableFeatures, Job>
  /** Place among all rows, from 0. */
  index: number
  top: number
  height: number
  isSelected: boolean
  /** Whether the keys `j` and `k` have come to it. */
  isCurrent: boolean
  onSelect: (id: number, options: { isRange: boolean }) => void
}

export const JobRow = memo(
  function JobRow({ row, index, top, height, isSelected, isCurrent, onSelect }: JobRowProps) {
    const job = row.original
    return (
      <div
        role="row"
        // The first row of all is the heading.
        aria-rowindex={index + 2}
        className={classes.row}
        data-id={job.id}
        data-current={isCurrent || undefined}
        data-selected={isSelected || undefined}
        style={{ height, transform: `translateY(${top}px)` }}
      >
        <div role="cell" className={classes.cell} data-area="select">
          <input
            type="checkbox"
            className={classes.check}
            aria-label={`Select job ${job.id}`}
            checked={isSelected}
            onChange={(event) => {
              const { nativeEvent } = event
              onSelect(job.id, { isRange: nativeEvent instanceof MouseEvent && nativeEvent.shiftKey })
            }}
          />
        </div>
        {row.getAllCells().map((cell) => (
          <div
            key={cell.column.id}
            role={cell.column.id === "name" ? "rowheader" : "cell"}
            className={classes.cell}
            data-area={cell.column.columnDef.meta?.area}
          >
            {flexRender(cell.column.columnDef.cell, cell.getContext())}
          </div>
        ))}
      </div>
    )
  },
  (before, after) =>
    before.row.original === after.row.original &&
    before.index === after.index &&
    before.top === after.top &&
    before.height === after.height &&
    before.isSelected === after.isSelected &&
    before.isCurrent === after.isCurrent,
)
