/** The command palette: every action that is offered now, and any job by its number or name. */
import { Combobox, Group, Kbd, Modal, TextInput, useCombobox } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"
import { useDeferredValue, useState } from "react"
import { useLocation } from "wouter"

import { foundJobsQuery } from "../api/queries"
import { FoundJob } from "../parts/FoundJob"
import { useAction, useActions, type Action } from "./actions"

const SECTIONS = ["This page", "Jobs", "Go to", "Help"] as const

export function Palette({ opened, onOpen, onClose }: { opened: boolean; onOpen: () => void; onClose: () => void }) {
  useAction({ id: "palette", title: "Find a command", section: "Help", keys: "Control+k", run: onOpen })
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title="Commands"
      size="lg"
      yOffset="10vh"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      {opened && <Search onClose={onClose} />}
    </Modal>
  )
}

function Search({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("")
  const [, go] = useLocation()
  // The list is open for as long as the palette is, and takes the Escape for itself.
  const combobox = useCombobox({ opened: true, onDropdownClose: onClose })
  const words = text.trim().toLowerCase()
  const found = useActions().filter(({ id, title }) => id !== "palette" && title.toLowerCase().includes(words))
  const jobs = useQuery(foundJobsQuery(useDeferredValue(words))).data ?? []

  const choose = (value: string) => {
    onClose()
    const job = jobs.find(({ id }) => value === optionOf(id))
    if (job) go(`/jobs/${job.id}`)
    else found.find(({ id }) => id === value)?.run()
  }

  return (
    <Combobox store={combobox} onOptionSubmit={choose} withinPortal={false}>
      <Combobox.EventsTarget>
        <TextInput
          data-autofocus
          aria-label="Command, or a job's number or name"
          placeholder="Command, or a job's number or name"
          value={text}
          onChange={(event) => {
            setText(event.currentTarget.value)
            combobox.selectFirstOption()
          }}
        />
      </Combobox.EventsTarget>
      <Combobox.Options mah="50vh" mt="xs" style={{ overflowY: "auto" }} aria-label="Found">
        {jobs.length > 0 && (
          <Combobox.Group label="Found jobs">
            {jobs.map((job) => (
              <FoundJob key={job.id} job={job} value={optionOf(job.id)} />
            ))}
          </Combobox.Group>
        )}
        {SECTIONS.map((section) => (
          <Offered key={section} section={section} actions={found.filter((action) => action.section === section)} />
        ))}
        {found.length + jobs.length === 0 && <Combobox.Empty>Nothing is called that</Combobox.Empty>}
      </Combobox.Options>
    </Combobox>
  )
}

/** What a found job is chosen by: no action has such an id. */
function optionOf(job: number): string {
  return `#${job}`
}

function Offered({ section, actions }: { section: string; actions: readonly Action[] }) {
  if (actions.length === 0) return null
  return (
    <Combobox.Group label={section}>
      {actions.map(({ id, title, keys }) => (
        <Combobox.Option key={id} value={id}>
          <Group justify="space-between">
            <span>{title}</span>
            {keys && <Keys keys={keys} />}
          </Group>
        </Combobox.Option>
      ))}
    </Combobox.Group>
  )
}

export function Keys({ keys }: { keys: string }) {
  return (
    <Group gap={4} component="span">
      {keys.split(" ").map((key, index) => (
        <Kbd key={`${key} ${index}`} size="xs">
          {key}
        </Kbd>
      ))}
    </Group>
  )
}
