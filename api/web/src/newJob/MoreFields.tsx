/** The rest of what a training takes: many fields, of which a filter leaves those that somebody looks for. */
import { Text, TextInput } from "@mantine/core"
import { useState } from "react"

import { FieldList } from "./FieldList"
import { Folded } from "./Folded"
import { countSet, countWrong, type Form } from "./form"
import type { Field } from "./schemas"

export function MoreFields({ fields, form }: { fields: readonly Field[]; form: Form }) {
  const [filter, setFilter] = useState("")
  const set = countSet(fields, form.draft.spec)
  // What is wrong is never filtered away: it has to be found.
  const shown = fields.filter((field) => isFound(field, filter) || countWrong([field], form) > 0)
  return (
    <Folded title="More options" set={set} wrong={countWrong(fields, form)} opened={set > 0}>
      <TextInput
        size="xs"
        label="Filter"
        placeholder="Name or description"
        value={filter}
        onChange={(event) => setFilter(event.currentTarget.value)}
        // Enter here looks for something, and submits nothing.
        onKeyDown={(event) => {
          if (event.key === "Enter") event.preventDefault()
        }}
        maw={260}
        mb="sm"
      />
      {shown.length > 0 ? (
        <FieldList fields={shown} form={form} />
      ) : (
        <Text size="sm" c="dimmed">
          No option has this in its name or description.
        </Text>
      )}
    </Folded>
  )
}

/** Whether each word is part of the field's name or description. */
function isFound({ id, label, description }: Field, filter: string): boolean {
  const text = `${id} ${label} ${description}`.toLowerCase()
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}
