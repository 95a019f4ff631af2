/** The field for a text to look for, with the way from match to match. */
import { Button, Checkbox, Text, TextInput } from "@mantine/core"
import { useDebouncedCallback } from "@mantine/hooks"
import { useState, type Ref } from "react"

import { count } from "../../format/numbers"
import type { Search } from "./matches"

interface SearchFieldProps {
  ref: Ref<HTMLInputElement>
  search: Search
  /** Of the loaded lines, how many have it, and which of these is shown, from 1. */
  matches: number
  position: number | undefined
  isSearchingAll: boolean
  onChange: (search: Search) => void
  onStep: (direction: 1 | -1) => void
  onSearchAll: (all: boolean) => void
}

/** So long after the last key the lines are searched. */
const PAUSE_MS = 200
/** The service takes no longer text. */
const LONGEST = 255

export function SearchField(props: SearchFieldProps) {
  const { ref, search, matches, position, isSearchingAll, onChange, onStep, onSearchAll } = props
  const [text, setText] = useState(search.text)
  const changeSoon = useDebouncedCallback((later: string) => onChange({ ...search, text: later }), PAUSE_MS)
  const hasText = search.text !== ""
  return (
    <>
      <TextInput
        ref={ref}
        label="Search"
        size="xs"
        type="search"
        w={220}
        maxLength={LONGEST}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value)
          changeSoon(event.currentTarget.value)
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return
          event.preventDefault()
          if (text !== search.text) onChange({ ...search, text })
          else onStep(event.shiftKey ? -1 : 1)
        }}
      />
      <Button.Group>
        <Button
          variant="default"
          size="xs"
          aria-label="Previous match"
          disabled={matches === 0}
          onClick={() => onStep(-1)}
        >
          ↑
        </Button>
        <Button variant="default" size="xs" aria-label="Next match" disabled={matches === 0} onClick={() => onStep(1)}>
          ↓
        </Button>
      </Button.Group>
      <Checkbox
        label="Match case"
        size="xs"
        mb={7}
        checked={search.matchCase}
        onChange={(event) => onChange({ ...search, matchCase: event.currentTarget.checked })}
      />
      {hasText && (
        <>
          <Button
            variant="default"
            size="xs"
            aria-pressed={isSearchingAll}
            onClick={() => onSearchAll(!isSearchingAll)}
          >
            {isSearchingAll ? "Close what was found" : "Search all output"}
          </Button>
          <Text size="xs" c="dimmed" mb={6} role="status">
            {position !== undefined && `${count(position)} of `}
            {count(matches)} {matches === 1 ? "line" : "lines"} loaded here
          </Text>
        </>
      )}
    </>
  )
}
