/** Links to the parts of a page, of which one is shown. */
import { Link } from "wouter"

import classes from "./TabLinks.module.css"

interface TabLink {
  title: string
  href: string
  isShown: boolean
}

export function TabLinks({ label, tabs }: { label: string; tabs: readonly TabLink[] }) {
  return (
    <nav aria-label={label} className={classes.tabs}>
      {tabs.map(({ title, href, isShown }) => (
        <Link key={href} href={href} className={classes.tab} aria-current={isShown ? "page" : undefined}>
          {title}
        </Link>
      ))}
    </nav>
  )
}
