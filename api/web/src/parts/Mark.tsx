/** A word that marks something: `best`, `simulated`. */
import type { ReactNode } from "react"

import classes from "./StateBadge.module.css"

export function Mark({ children }: { children: ReactNode }) {
  return <span className={classes.badge}>{children}</span>
}
