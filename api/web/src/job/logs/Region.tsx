/** The region in which lines of output scroll: of any number only those are in the page that can be seen. */
import { Box } from "@mantine/core"
import type { Virtualizer } from "@tanstack/react-virtual"
import { useState, type ReactNode, type Ref, type UIEvent } from "react"

import { count } from "../../format/numbers"
import { timeOfDay } from "../../format/times"
import { useSettings } from "../../settings/settings"
import { LineText } from "./LineText"
import type { Line } from "./lines"
import classes from "./Logs.module.css"

/** Characters of a line that are shown before somebody asks for the rest. */
const SHOWN_CHARACTERS = 10_000
/** What stands before the text of a line, at most. */
const GUTTER_CHARACTERS = 40

export interface RegionProps {
  ref: Ref<HTMLDivElement>
  virtualizer: Virtualizer<HTMLDivElement, Element>
  lines: readonly Line[]
  /** Characters of the longest of them. */
  widest: number
  /** Which of the lines is shown among matches. */
  current: number | undefined
  pattern: RegExp | null
  isWrapped: boolean
  hasTimes: boolean
  /** What stands before each line; null where all are of the same rank and attempt. */
  label: ((line: Line) => string) | null
  onScroll: (event: UIEvent<HTMLDivElement>) => void
  onSearch: () => void
  /** What is said where there are no lines. */
  children: ReactNode
}

export function Region(props: RegionProps) {
  const {
    ref,
    virtualizer,
    lines,
    widest,
    current,
    pattern,
    isWrapped,
    hasTimes,
    label,
    onScroll,
    onSearch,
    children,
  } = props
  const { timeZone, density } = useSettings()
  // As wide as the longest line of all, or the region would scroll sideways by itself as that one comes and goes.
  const width = isWrapped ? undefined : `${Math.min(widest, SHOWN_CHARACTERS) + GUTTER_CHARACTERS}ch`
  const [whole, setWhole] = useState<ReadonlySet<number>>(() => new Set())
  return (
    <Box
      ref={ref}
      className={classes.region}
      data-compact={density === "compact" || undefined}
      role="log"
      // Read out line by line it would drown all else; who wants to hear it goes into the region.
      aria-live="off"
      aria-label="Output"
      tabIndex={0}
      onScroll={onScroll}
      onKeyDown={(event) => {
        if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f") {
          event.preventDefault()
          onSearch()
        }
      }}
    >
      {lines.length === 0 && children}
      <div className={classes.rows} style={{ height: virtualizer.getTotalSize(), minWidth: width }}>
        {virtualizer.getVirtualItems().map(({ index, key, start }) => {
          const line = lines[index]
          if (!line) return null
          const isCut = line.text.length > SHOWN_CHARACTERS && !whole.has(line.key)
          return (
            <div
              key={key}
              ref={isWrapped ? virtualizer.measureElement : undefined}
              data-index={index}
              className={classes.row}
              data-wrap={isWrapped || undefined}
              data-current={line.key === current || undefined}
              style={{ transform: `translateY(${start}px)` }}
            >
              {hasTimes && <span className={classes.gutter}>{timeOfDay(line.at, timeZone)}</span>}
              {label && <span className={classes.gutter}>{label(line)}</span>}
              <span>
                <LineText
                  text={isCut ? line.text.slice(0, SHOWN_CHARACTERS) : line.text}
                  style={line.style}
                  pattern={pattern}
                />
                {isCut && (
                  <button type="button" className={classes.rest} onClick={() => setWhole(new Set(whole).add(line.key))}>
                    Show all {count(line.text.length)} characters
                  </button>
                )}
              </span>
            </div>
          )
        })}
      </div>
    </Box>
  )
}
