/** What narrows the list of jobs: the search and the states; on a phone also the order, which has no headings there. */
import { Button, NativeSelect, TextInput } from "@mantine/core"
import { useDebouncedCallback } from "@mantine/hooks"
import { useRef, useState } from "react"
import { useLocation } from "wouter"

import { jobIdIn } from "../api/jobId"
import type { JobSort } from "../api/jobPages"
import { STATES } from "../api/states"
import type { State } from "../api/types"
import { useAction } from "../keys/actions"
import { StateBadge } from "../parts/StateBadge"
import classes from "./Jobs.module.css"
import { SEARCH_WORDS } from "./search"
import { isUnfiltered, type View, type ViewChange } from "./view"

const TYPING_MS = 300

const SORTS: { value: JobSort; label: string }[] = [
  { value: "-id", label: "Newest first" },
  { value: "id", label: "Oldest first" },
  { value: "-priority", label: "Highest priority first" },
  { value: "priority", label: "Lowest priority first" },
  { value: "name", label: "Name, A to Z" },
  { value: "-name", label: "Name, Z to A" },
]

interface ToolbarProps {
  view: View
  onView: (change: ViewChange, options?: { isStep?: boolean }) => void
}

export function Toolbar({ view, onView }: ToolbarProps) {
  const toggle = (state: State) =>
    onView(
      ({ states }) => ({ states: states.includes(state) ? states.filter((one) => one !== state) : [...states, state] }),
      { isStep: true },
    )
  return (
    <div className={classes.toolbar}>
      <Search view={view} onView={onView} />
      <div role="group" aria-label="States" className={classes.states}>
        {STATES.map((state) => (
          <button
            key={state}
            type="button"
            className={classes.state}
            aria-pressed={view.states.includes(state)}
            onClick={() => toggle(state)}
          >
            <StateBadge state={state} />
          </button>
        ))}
        {!isUnfiltered(view) && (
          <Button
            size="compact-xs"
            variant="default"
            onClick={() => onView({ states: [], search: "" }, { isStep: true })}
          >
            Clear filters
          </Button>
        )}
      </div>
      <NativeSelect
        className={classes.phoneOnly}
        size="xs"
        aria-label="Order"
        data={
          SORTS.some(({ value }) => value === view.sort) ? SORTS : [...SORTS, { value: view.sort, label: "By age" }]
        }
        value={view.sort}
        onChange={(event) => onView({ sort: event.currentTarget.value as JobSort }, { isStep: true })}
      />
    </div>
  )
}

function Search({ view, onView }: ToolbarProps) {
  const input = useRef<HTMLInputElement>(null)
  const [, go] = useLocation()
  // What is typed and not yet in the address, which is what counts.
  const [typed, setTyped] = useState<string | null>(null)
  const tell = useDebouncedCallback(
    (search: string) => {
      setTyped(null)
      onView({ search })
    },
    { delay: TYPING_MS, flushOnUnmount: false },
  )
  useAction({
    id: "search",
    title: "Search the jobs",
    section: "This page",
    keys: "/",
    run: () => input.current?.focus(),
  })
  return (
    <TextInput
      ref={input}
      type="search"
      className={classes.search}
      size="xs"
      aria-label="Search the jobs"
      aria-keyshortcuts="/"
      placeholder="Name, or user:ann, model:resnet50, label:team=vision …"
      title={`Part of a name, and any of ${SEARCH_WORDS.map((word) => `${word}:`).join(" ")}`}
      value={typed ?? view.search}
      onChange={(event) => {
        setTyped(event.currentTarget.value)
        tell(event.currentTarget.value)
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape" && event.key !== "Enter") return
        // The browser would empty the field for Escape; here both keys lead from it to the rows' keys.
        event.preventDefault()
        event.currentTarget.blur()
        const words = event.currentTarget.value.trim()
        const id = words.startsWith("#") ? jobIdIn(words.slice(1)) : null
        if (event.key === "Enter" && id !== null) go(`/jobs/${id}`)
      }}
    />
  )
}
