/** A section that is folded away until somebody opens it, and says what is in it all the same. */
import { useState, type ReactNode } from "react"

import classes from "./newJob.module.css"

interface FoldedProps {
  title: string
  /** How many of its fields are set, and how many are wrong. */
  set: number
  wrong: number
  /** Whether it is open at first. */
  opened?: boolean
  children: ReactNode
}

export function Folded({ title, set, wrong, opened = false, children }: FoldedProps) {
  const [openedFirst] = useState(opened)
  const counts = [...(set > 0 ? [`${set} set`] : []), ...(wrong > 0 ? [`${wrong} to correct`] : [])]
  return (
    <details className={classes.folded} open={openedFirst}>
      <summary>
        <h2 className={classes.heading}>{title}</h2>
        {counts.length > 0 && <span className={wrong > 0 ? classes.error : classes.count}>{counts.join(", ")}</span>}
      </summary>
      {children}
    </details>
  )
}
