/** The request as it will be sent, to read, to copy, and to edit as JSON. */
import { Button, Group, Textarea, Title } from "@mantine/core"
import { useState } from "react"

import { Wording } from "../format/commands"
import { CopyText } from "../parts/CopyText"
import { apiAddress } from "../place"
import { useRights } from "../session/rights"
import { jsonOf, jsonProblem } from "./draft"
import type { Form } from "./form"
import classes from "./newJob.module.css"
import type { JobRequest } from "./requests"

const FEWEST_ROWS = 6
const MOST_ROWS = 24

export function RequestPanel({ form, request }: { form: Form; request: JobRequest }) {
  const { asksForTokens } = useRights()
  const [isEdited, setEdited] = useState(false)
  const to = new Wording({ url: apiAddress, asksForTokens })
  const json = jsonOf(form.draft)
  const problem = jsonProblem(form.draft)
  // Invalid JSON must stay in sight: it is why nothing can be sent.
  const showsEditor = isEdited || problem !== null
  return (
    <section aria-labelledby="request-title" className={classes.request}>
      <Group justify="space-between" mb={4}>
        <Title order={2} size="h5" id="request-title">
          What is sent
        </Title>
        <Button
          variant="default"
          size="compact-xs"
          aria-pressed={showsEditor}
          disabled={problem !== null}
          onClick={() => setEdited(!isEdited)}
        >
          Edit as JSON
        </Button>
      </Group>
      {showsEditor && (
        <Textarea
          label={form.parent ? "The whole spec" : "The spec"}
          value={json}
          onChange={(event) => form.change({ kind: "json", text: event.currentTarget.value })}
          error={problem}
          rows={Math.min(MOST_ROWS, Math.max(FEWEST_ROWS, json.split("\n").length))}
          classNames={{ input: classes.code }}
          spellCheck={false}
          mb="xs"
        />
      )}
      {(!showsEditor || form.parent !== null) && problem === null && (
        <>
          <p className={classes.count}>POST {request.path}</p>
          <CopyText label="request as JSON" text={JSON.stringify(request.body, null, 2)} />
        </>
      )}
      {problem === null && (
        <details className={classes.command}>
          <summary>As a command</summary>
          <CopyText label="request as curl" text={to.curlWith(request.path, request.body)} />
        </details>
      )}
    </section>
  )
}
