/** The audit: what was done, by whom, and what a role did not allow. */
import { Anchor, Code, Group, Table, Text, TextInput, Title } from "@mantine/core"
import { useDebouncedCallback } from "@mantine/hooks"
import { useInfiniteQuery } from "@tanstack/react-query"
import { useState } from "react"
import { Link } from "wouter"

import type { AuditEvent } from "../api/types"
import { useAddress } from "../parts/address"
import { Paged } from "../parts/Paged"
import { Mark } from "../parts/Mark"
import { ScrolledTable } from "../parts/ScrolledTable"
import { At } from "../parts/Time"
import { auditQuery, type AuditFilters } from "./queries"

/** So long after the last key the audit is asked for. */
const PAUSE_MS = 300

const FILTERS = { actor: "Who", action: "Action", subject: "Subject" } as const
const EXAMPLES = { actor: "alice", action: "submit_job", subject: "jobs/7" } as const

export function Audit() {
  const { params, change } = useAddress()
  const filters: AuditFilters = {}
  for (const name of filterNames) {
    const wanted = params.get(name)
    if (wanted) filters[name] = wanted
  }
  const audit = useInfiniteQuery(auditQuery(filters))
  return (
    <section>
      <Title order={2} size="h4" mb="xs">
        Audit
      </Title>
      <Group gap="xs" mb="sm">
        {filterNames.map((name) => (
          <Filter key={name} name={name} value={filters[name] ?? ""} onChange={(text) => change({ [name]: text })} />
        ))}
      </Group>
      <Paged query={audit} what="events" none="Nothing of that kind was done">
        {(events) => <AuditTable events={events} />}
      </Paged>
    </section>
  )
}

const filterNames = Object.keys(FILTERS) as (keyof typeof FILTERS)[]

interface FilterProps {
  name: keyof typeof FILTERS
  value: string
  onChange: (text: string) => void
}

function Filter({ name, value, onChange }: FilterProps) {
  const [text, setText] = useState(value)
  const changeSoon = useDebouncedCallback(onChange, PAUSE_MS)
  return (
    <TextInput
      label={FILTERS[name]}
      placeholder={EXAMPLES[name]}
      size="xs"
      w={160}
      maxLength={255}
      value={text}
      onChange={(event) => {
        setText(event.currentTarget.value)
        changeSoon(event.currentTarget.value.trim())
      }}
    />
  )
}

function AuditTable({ events }: { events: AuditEvent[] }) {
  return (
    <ScrolledTable label="Audit">
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">When</Table.Th>
          <Table.Th scope="col">Who</Table.Th>
          <Table.Th scope="col">Action</Table.Th>
          <Table.Th scope="col">Subject</Table.Th>
          <Table.Th scope="col">What was asked for</Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {events.map((event) => (
          <Table.Tr key={event.id}>
            <Table.Td style={{ whiteSpace: "nowrap" }}>
              <At at={event.at} />
            </Table.Td>
            <Table.Td>
              {event.actor ?? "–"}
              {event.token_id !== null && (
                <Text span size="xs" c="dimmed">
                  {" "}
                  token {event.token_id}
                </Text>
              )}
            </Table.Td>
            <Table.Td>
              {event.action} {event.detail.refused !== undefined && <Mark>refused</Mark>}
            </Table.Td>
            <Table.Td>
              <Subject path={event.subject} />
            </Table.Td>
            <Table.Td maw={480} title={event.request_id ? `Request ${event.request_id}` : undefined}>
              {Object.keys(event.detail).length > 0 && (
                <Code style={{ overflowWrap: "anywhere" }}>{JSON.stringify(event.detail)}</Code>
              )}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </ScrolledTable>
  )
}

function Subject({ path }: { path: string | null }) {
  const job = /^jobs\/([1-9]\d*)/.exec(path ?? "")?.[1]
  if (job === undefined) return path ?? "–"
  return (
    <Anchor component={Link} href={`/jobs/${job}`} inherit>
      {path}
    </Anchor>
  )
}
