/** Lanes with bars on a common time axis, in a region that scrolls; each lane says in words what its bar shows. */
import { Box } from "@mantine/core"
import type { ReactNode } from "react"

import { duration } from "../../format/times"
import { useSettings } from "../../settings/settings"
import { ticksOf, type Axis, type Placed } from "./axis"
import classes from "./Chart.module.css"

export function Chart({ label, axis, children }: { label: string; axis: Axis; children: ReactNode }) {
  const { density } = useSettings()
  return (
    // A region that scrolls must be reachable by keyboard.
    <Box className={classes.chart} data-density={density} role="region" aria-label={label} tabIndex={0}>
      <div className={classes.axis} aria-hidden>
        <div className={classes.track}>
          {ticksOf(axis).map(({ share, ahead_ms }) => (
            <span key={ahead_ms} className={classes.tick} style={{ left: `${share * 100}%` }}>
              {ahead_ms === 0 ? "now" : duration(ahead_ms / 1000)}
            </span>
          ))}
        </div>
      </div>
      {children}
    </Box>
  )
}

export function Lanes({ label, axis, children }: { label: string; axis: Axis; children: ReactNode }) {
  return (
    <div className={classes.group}>
      <ol className={classes.lanes} aria-label={label}>
        {children}
      </ol>
      <div className={classes.lines} aria-hidden>
        {ticksOf(axis).map(({ share, ahead_ms }) => (
          <span
            key={ahead_ms}
            className={ahead_ms === 0 ? classes.now : classes.grid}
            style={{ left: `${share * 100}%` }}
          />
        ))}
      </div>
    </div>
  )
}

interface LaneProps {
  /** What the lane is of: beside its bar. */
  children: ReactNode
  /** What its bar shows, in words. */
  words: ReactNode
  /** Null where there is nothing to draw, or it lies beyond the axis. */
  bar: Placed | null
  kind: "running" | "waiting"
  /** Whether the bar's end is known, or else left open. */
  hasEnd: boolean
}

export function Lane({ children, words, bar, kind, hasEnd }: LaneProps) {
  return (
    <li className={classes.lane}>
      <div className={classes.label}>
        <div className={classes.name}>{children}</div>
        <div className={classes.words}>{words}</div>
      </div>
      <div className={classes.track} aria-hidden>
        {bar && (
          <span
            className={classes.bar}
            data-kind={kind}
            data-open={hasEnd ? undefined : true}
            data-cut-left={bar.isCutLeft || undefined}
            data-cut-right={bar.isCutRight || undefined}
            style={{ left: `${bar.left}%`, width: `${bar.width}%` }}
          />
        )}
      </div>
    </li>
  )
}
