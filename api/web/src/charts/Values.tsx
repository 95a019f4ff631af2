/** What a chart shows, in a table: for who does not see it, and for who wants the figures. */
import { Box } from "@mantine/core"

import { figure } from "../format/numbers"
import { place, AXIS_TITLES, type Axis } from "./axis"
import classes from "./Chart.module.css"
import { extremes } from "./curve"
import type { Line } from "./lines"

interface ValuesProps {
  title: string
  lines: readonly Line[]
  axis: Axis
  timeZone: string
  format: (value: number) => string
}

export function Values({ title, lines, axis, timeZone, format }: ValuesProps) {
  const where = (at: number) => `at ${place(at, axis, timeZone)}`
  return (
    // Scrolls by itself on a phone; a region that scrolls must be reachable by keyboard.
    <Box className={classes.table} role="region" tabIndex={0} aria-label={`Values of ${title}`}>
      <table>
        <thead>
          <tr>
            <th scope="col">Curve</th>
            <th scope="col">Last</th>
            <th scope="col">Lowest</th>
            <th scope="col">Highest</th>
            <th scope="col">Not finite</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => {
            const { last, lowest, highest, gaps } = extremes(line.at, line.values, line.kinds)
            return (
              <tr key={line.id}>
                <th scope="row">{line.label}</th>
                <td>
                  {last && `${last.value === null ? figure(null, last.kind) : format(last.value)} ${where(last.at)}`}
                </td>
                <td>{lowest && `${format(lowest.value)} ${where(lowest.at)}`}</td>
                <td>{highest && `${format(highest.value)} ${where(highest.at)}`}</td>
                <td>{gaps}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
      <p className={classes.note}>Places are on the axis: {AXIS_TITLES[axis].toLowerCase()}.</p>
    </Box>
  )
}
