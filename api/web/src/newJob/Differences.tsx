/** What of a clone differs from the job that it is cloned from. */
import { Anchor, Table, Text, Title } from "@mantine/core"
import { Link } from "wouter"

import { differencesOf, NO_VALUE } from "../format/differences"
import type { Json, JsonObject } from "../format/json"
import { ScrolledTable } from "../parts/ScrolledTable"
import classes from "./newJob.module.css"
import type { Parent } from "./requests"
import { flattened, type Field } from "./schemas"
import { plain } from "./texts"

export function Differences({
  spec,
  parent: { job, spec: before },
  fields,
}: {
  spec: JsonObject
  parent: Parent
  fields: readonly Field[]
}) {
  const found = differencesOf([before, spec])
  const defaults = new Map(flattened(fields).map((field) => [field.id, field.default]))
  const shown = (value: Json | undefined, id: string) => {
    const effective = value ?? defaults.get(id) ?? null
    return effective === null || effective === "" ? NO_VALUE : plain(effective)
  }
  return (
    <section aria-labelledby="differences-title">
      <Title order={2} size="h5" id="differences-title" mb={4}>
        Changes to{" "}
        <Anchor component={Link} href={`/jobs/${job.id}`} inherit underline="always">
          job {job.id}
        </Anchor>
      </Title>
      {found.length === 0 ? (
        <Text size="sm" c="dimmed">
          None as yet: it would be the same job once more.
        </Text>
      ) : (
        <ScrolledTable label="Changes">
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Field</Table.Th>
              <Table.Th scope="col">Job {job.id}</Table.Th>
              <Table.Th scope="col">This one</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {found.map(({ path, values }) => {
              const id = path.join(".")
              return (
                <Table.Tr key={id}>
                  <Table.Th scope="row">{id}</Table.Th>
                  {values.map((value, index) => (
                    // The columns are always the same two.
                    <Table.Td key={index} className={classes.difference}>
                      {shown(value, id)}
                    </Table.Td>
                  ))}
                </Table.Tr>
              )
            })}
          </Table.Tbody>
        </ScrolledTable>
      )}
    </section>
  )
}
