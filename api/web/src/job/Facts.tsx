/** A list of facts by name: in columns where there is room, one below another on a phone. */
import type { ReactNode } from "react"

import classes from "./Facts.module.css"

export interface Fact {
  name: string
  value: ReactNode
}

export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl className={classes.facts}>
      {facts.map(({ name, value }) => (
        <div key={name} className={classes.fact}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
