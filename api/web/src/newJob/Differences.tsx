/** What of a clone differs from the job that it is cloned from. */
import { Anchor, Text, Title } from "@mantine/core"
import { Link } from "wouter"

import { differences, type Json, type JsonObject } from "./json"
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
  const found = differences(before, spec)
  const defaults = new Map(flattened(fields).map((field) => [field.id, field.default]))
  const shown = (value: Json | undefined, id: string) => {
    const effective = value ?? defaults.get(id) ?? null
    return effective === null || effective === "" ? "none" : plain(effective)
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
        // A region that scrolls must be reachable by keyboard.
        // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        <div role="region" aria-label="Changes" tabIndex={0} className={classes.scrolls}>
          <table className={classes.differences}>
            <thead>
              <tr>
                <th scope="col">Field</th>
                <th scope="col">Job {job.id}</th>
                <th scope="col">This one</th>
              </tr>
            </thead>
            <tbody>
              {found.map(({ path, before: was, after }) => {
                const id = path.join(".")
                return (
                  <tr key={id}>
                    <th scope="row">{id}</th>
                    <td>{shown(was, id)}</td>
                    <td>{shown(after, id)}</td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}
