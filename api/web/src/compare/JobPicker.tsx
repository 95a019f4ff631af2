/** Adds a job to those that are compared, by its number or a part of its name. */
import { Combobox, TextInput, useCombobox } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useDeferredValue, useState } from "react"

import { foundJobsQuery } from "../api/queries"
import { FoundJob } from "../parts/FoundJob"
import { MOST_JOBS } from "./chosenJobs"

export function JobPicker({ chosen, onAdd }: { chosen: readonly number[]; onAdd: (job: number) => void }) {
  const [text, setText] = useState("")
  const combobox = useCombobox({ onDropdownClose: () => combobox.resetSelectedOption() })
  const words = useDeferredValue(text.trim().toLowerCase())
  const found = useQuery(foundJobsQuery(words))
  const offered = (found.data ?? []).filter(({ id }) => !chosen.includes(id))
  const isFull = chosen.length >= MOST_JOBS

  return (
    <Combobox
      store={combobox}
      onOptionSubmit={(value) => {
        onAdd(Number(value))
        setText("")
        combobox.closeDropdown()
      }}
    >
      <Combobox.Target>
        <TextInput
          label="Add a job"
          description={isFull ? `No more than ${MOST_JOBS} jobs` : "By its number, or a part of its name"}
          maw={360}
          disabled={isFull}
          value={text}
          onChange={(event) => {
            setText(event.currentTarget.value)
            combobox.openDropdown()
            combobox.selectFirstOption()
          }}
          onFocus={() => combobox.openDropdown()}
          onBlur={() => combobox.closeDropdown()}
        />
      </Combobox.Target>
      <Combobox.Dropdown hidden={words === "" || found.data === undefined}>
        <Combobox.Options aria-label="Found jobs">
          {offered.map((job) => (
            <FoundJob key={job.id} job={job} value={String(job.id)} />
          ))}
          {offered.length === 0 && <Combobox.Empty>No other job is called that</Combobox.Empty>}
        </Combobox.Options>
      </Combobox.Dropdown>
    </Combobox>
  )
}
