/** The region in which lines of output scroll: of any number only those are in the page that can be seen. */
import { Box } from "@mantine/core"
import { useVirtualizer } from "@tanstack/react-virtual"
import { useCallback, useImperativeHandle, useLayoutEffect, useRef, useState, type ReactNode, type Ref } from "react"

import { count } from "../../format/numbers"
import { timeOfDay } from "../../format/times"
import { useSettings } from "../../settings/settings"
import { LineText } from "./LineText"
import type { Line } from "./lines"
import classes from "./Logs.module.css"

/** So near to its end, in pixels, the region follows what comes. */
const AT_END_PX = 40
/** So near to its beginning earlier lines are asked for. */
const AT_BEGIN_PX = 600
/** Characters of a line that are shown before somebody asks for the rest. */
const SHOWN_CHARACTERS = 10_000
/** What stands before the text of a line, at most. */
const GUTTER_CHARACTERS = 40

/** What its owner can have it do; it keeps what changes as it scrolls to itself, so that nothing else is drawn for that. */
export interface RegionHandle {
  toEnd: () => void
  /** Go to the line with a key. */
  toLine: (key: number) => void
  /** Key of the first line that can be seen. */
  firstSeen: () => number | undefined
}

interface RegionProps {
  ref: Ref<RegionHandle>
  lines: readonly Line[]
  /** Characters of the longest of them. */
  widest: number
  /** Which of the lines is shown among matches. */
  current: number | undefined
  pattern: RegExp | null
  isWrapped: boolean
  hasTimes: boolean
  isPaused: boolean
  /** What stands before each line; null where all are of the same rank and attempt. */
  label: ((line: Line) => string) | null
  /** Whether its end is in view, with what comes next. */
  onFollowing: (isFollowing: boolean) => void
  /** Its beginning is near. */
  onBegin: () => void
  onSearch: () => void
  /** What is said where there are no lines. */
  children: ReactNode
}

export function Region(props: RegionProps) {
  const { ref, lines, widest, current, pattern, isWrapped, hasTimes, isPaused, label } = props
  const { timeZone, density } = useSettings()
  const region = useRef<HTMLDivElement>(null)
  // Another function with each render would have the places of all lines reckoned anew as it scrolls.
  const getItemKey = useCallback((index: number) => lines[index]?.key ?? index, [lines])
  // eslint-disable-next-line react-hooks/incompatible-library -- nothing here is memoised by what the virtualizer returns
  const virtualizer = useVirtualizer<HTMLDivElement, Element>({
    count: lines.length,
    getScrollElement: () => region.current,
    estimateSize: () => (density === "compact" ? 17 : 20),
    getItemKey,
    overscan: 15,
    // What is shown stays where it is as earlier lines are put before it; at its end it goes on with what comes.
    anchorTo: "end",
    followOnAppend: !isPaused,
    scrollEndThreshold: AT_END_PX,
  })
  useImperativeHandle(
    ref,
    () => ({
      toEnd: () => virtualizer.scrollToEnd(),
      toLine: (key) => {
        const first = lines[0]?.key
        if (first !== undefined) virtualizer.scrollToIndex(key - first, { align: "center" })
      },
      firstSeen: () => lines[virtualizer.getVirtualItemForOffset(virtualizer.scrollOffset ?? 0)?.index ?? 0]?.key,
    }),
    [virtualizer, lines],
  )
  // Heights that were measured are those of the other way to show lines.
  useLayoutEffect(() => virtualizer.measure(), [virtualizer, isWrapped])
  // As wide as the longest line of all, or the region would scroll sideways by itself as that one comes and goes.
  const width = isWrapped ? undefined : `${Math.min(widest, SHOWN_CHARACTERS) + GUTTER_CHARACTERS}ch`
  const [whole, setWhole] = useState<ReadonlySet<number>>(() => new Set())
  return (
    <Box
      ref={region}
      className={classes.region}
      data-compact={density === "compact" || undefined}
      role="log"
      // Read out line by line it would drown all else; who wants to hear it goes into the region.
      aria-live="off"
      aria-label="Output"
      tabIndex={0}
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
        props.onFollowing(scrollHeight - scrollTop - clientHeight <= AT_END_PX)
        if (scrollTop < AT_BEGIN_PX) props.onBegin()
      }}
      onKeyDown={(event) => {
        if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f") {
          event.preventDefault()
          props.onSearch()
        }
      }}
    >
      {lines.length === 0 && props.children}
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
