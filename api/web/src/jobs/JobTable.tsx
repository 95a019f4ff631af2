/** The table of jobs: only the rows on the screen exist, whatever number there is. */
import { useMediaQuery } from "@mantine/hooks"
import { useTable } from "@tanstack/react-table"
import { useVirtualizer } from "@tanstack/react-virtual"
import { useEffect, useEffectEvent, useRef, useState } from "react"
import { useLocation } from "wouter"

import type { Job } from "../api/types"
import { useAction } from "../keys/actions"
import { useSettings } from "../settings/settings"
import { columns, features } from "./columns"
import { JobRow } from "./JobRow"
import classes from "./Jobs.module.css"
import { JobTableHead } from "./JobTableHead"
import { between, toggled } from "./selection"
import { filtersIn, type View, type ViewChange } from "./view"

/** Pixels; `Jobs.module.css` lays the cells out for them. */
const HEIGHTS = { comfortable: 52, compact: 32, card: 106 }
const HEAD_HEIGHT = 36

/** How far each list was scrolled, for whoever comes back to it from a job. */
const scrolledTo = new Map<string, number>()

interface JobTableProps {
  jobs: readonly Job[]
  /** Whether there are more than are loaded. */
  hasMore: boolean
  /** What is shown is of the view before; that of this one is on its way. */
  isOld: boolean
  view: View
  onView: (change: ViewChange, options?: { isStep?: boolean }) => void
  /** The first and the last row on the screen. */
  onReach: (first: number, last: number) => void
}

export function JobTable(props: JobTableProps) {
  const { density } = useSettings()
  const isPhone = useMediaQuery("(max-width: 48em)", false, { getInitialValueInEffect: false })
  const layout = isPhone ? "card" : density
  const list = JSON.stringify([filtersIn(props.view), layout])
  // Made anew for another list, and for another height of rows: all places are others.
  return <Rows key={list} {...props} layout={layout} list={list} />
}

interface RowsProps extends JobTableProps {
  layout: keyof typeof HEIGHTS
  list: string
}

function Rows({ jobs, hasMore, isOld, view, onView, onReach, layout, list }: RowsProps) {
  const scrolled = useRef<HTMLDivElement>(null)
  const loaded = useRef(jobs)
  const lastSelected = useRef<number>(undefined)
  const toFocus = useRef<number>(undefined)
  const [currentId, setCurrentId] = useState<number>()
  const headHeight = layout === "card" ? 0 : HEAD_HEIGHT
  const height = HEIGHTS[layout]
  const [begin] = useState(() => scrolledTo.get(list) ?? 0)
  const [isAtTop, setAtTop] = useState(begin < height)

  // eslint-disable-next-line react-hooks/incompatible-library -- nothing here is memoised by what the virtualizer returns
  const virtualizer = useVirtualizer({
    count: jobs.length,
    getScrollElement: () => scrolled.current,
    estimateSize: () => height,
    getItemKey: (index) => jobs[index]?.id ?? index,
    initialOffset: begin,
    overscan: 5,
    paddingStart: headHeight,
    scrollPaddingStart: headHeight,
    // Jobs that come at the top do not move what one has scrolled to; at the top they are to be seen.
    anchorTo: isAtTop ? "start" : "end",
  })
  const items = virtualizer.getVirtualItems()
  const first = items[0]?.index ?? 0
  const table = useTable({
    features,
    columns,
    data: items.flatMap(({ index }) => jobs[index] ?? []),
    getRowId: (job) => String(job.id),
  })
  const last = items.at(-1)?.index ?? -1

  const tellReach = useEffectEvent(onReach)
  useEffect(() => {
    loaded.current = jobs
    tellReach(first, last)
  }, [jobs, first, last])

  const select = (id: number, { isRange }: { isRange: boolean }) => {
    const from = isRange ? lastSelected.current : undefined
    lastSelected.current = id
    onView((before) => ({
      selected: from === undefined ? toggled(before.selected, id) : between(before.selected, loaded.current, from, id),
    }))
  }
  const focusRow = () => {
    const link = scrolled.current?.querySelector<HTMLElement>(`[data-id="${toFocus.current}"] a`)
    if (!link) return
    link.focus({ preventScroll: true })
    toFocus.current = undefined
  }
  useRowKeys({ jobs, currentId, onSelect: select }, (index) => {
    virtualizer.scrollToIndex(index, { align: "auto" })
    toFocus.current = jobs[index]?.id
    setCurrentId(toFocus.current)
    focusRow()
  })
  // A row that was not on the screen is there some renders after it was scrolled to.
  useEffect(() => {
    if (toFocus.current !== undefined) focusRow()
  })

  return (
    <div
      ref={scrolled}
      className={classes.region}
      role="region"
      aria-label="Jobs"
      // A region that scrolls must be reachable by keyboard.
      // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls
      tabIndex={0}
      data-layout={layout}
      data-old={isOld || undefined}
      onScroll={(event) => {
        const { scrollTop } = event.currentTarget
        scrolledTo.set(list, scrollTop)
        setAtTop(scrollTop < height)
      }}
    >
      <div
        role="table"
        aria-label="Jobs"
        aria-rowcount={hasMore ? -1 : jobs.length + 1}
        className={classes.table}
        style={{ height: virtualizer.getTotalSize() }}
      >
        <JobTableHead table={table} jobs={jobs} view={view} onView={onView} />
        <div role="rowgroup">
          {table.getRowModel().rows.map((row, place) => {
            const item = items[place]
            if (item === undefined) return null
            return (
              <JobRow
                key={row.id}
                row={row}
                index={item.index}
                top={item.start}
                height={height}
                isSelected={view.selected.has(row.original.id)}
                isCurrent={row.original.id === currentId}
                onSelect={select}
              />
            )
          })}
        </div>
      </div>
    </div>
  )
}

interface RowKeys {
  jobs: readonly Job[]
  currentId: number | undefined
  onSelect: (id: number, options: { isRange: boolean }) => void
}

/** Moves by `j` and `k`; what has the focus is the job's link, so Enter opens it by itself. */
function useRowKeys({ jobs, currentId, onSelect }: RowKeys, moveTo: (index: number) => void): void {
  const [, go] = useLocation()
  const step = (by: number) => {
    if (jobs.length === 0) return
    const at = jobs.findIndex(({ id }) => id === currentId)
    moveTo(at === -1 ? 0 : Math.min(jobs.length - 1, Math.max(0, at + by)))
  }
  const section = "This page"
  const enabled = currentId !== undefined
  useAction({ id: "row down", title: "Go to the next job of the list", section, keys: "j", run: () => step(1) })
  useAction({ id: "row up", title: "Go to the job before", section, keys: "k", run: () => step(-1) })
  useAction({
    id: "row open",
    title: "Open the job that one has come to (Enter does it too)",
    section,
    keys: "o",
    enabled,
    run: () => {
      if (currentId !== undefined) go(`/jobs/${currentId}`)
    },
  })
  useAction({
    id: "row select",
    title: "Select the job that one has come to",
    section,
    keys: "x",
    enabled,
    run: () => {
      if (currentId !== undefined) onSelect(currentId, { isRange: false })
    },
  })
}
