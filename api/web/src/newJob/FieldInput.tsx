/** The input for one field, by its kind. */
import { Checkbox, Group, NativeSelect, Textarea, TextInput } from "@mantine/core"
import { memo } from "react"

import { areEqual, type Json } from "../format/json"
import type { Change, TypedText } from "./draft"
import { inputId } from "./form"
import classes from "./newJob.module.css"
import { Prose } from "./Prose"
import type { Field } from "./schemas"
import { plain, read, write } from "./texts"

interface FieldInputProps {
  field: Field
  /** What is set; undefined for the default. */
  value: Json | undefined
  typed: TypedText | undefined
  error: string | undefined
  /** Of a clone: what the other job has there, where that is something else. */
  before: string | undefined
  change: (change: Change) => void
}

export const FieldInput = memo(function FieldInput({ field, value, typed, error, before, change }: FieldInputProps) {
  const set = (next: Json | undefined, text?: TypedText) =>
    change({
      kind: "set",
      path: field.path,
      value: next === undefined || areEqual(next, field.default) ? undefined : next,
      typed: text,
    })
  const shared = {
    id: inputId(field.id),
    size: "xs",
    label: field.label,
    description: <Described field={field} before={before} />,
    error: typed?.problem ?? error,
    classNames: { description: classes.description },
  }
  const effective = value === undefined ? field.default : value

  if (field.kind === "flag" && field.default !== null) {
    return (
      <Checkbox
        {...shared}
        aria-invalid={shared.error ? true : undefined}
        checked={effective === true}
        onChange={(event) => set(event.currentTarget.checked)}
        classNames={{ description: classes.description }}
        className={classes.flag}
      />
    )
  }
  if (field.kind === "choice" || field.kind === "flag") {
    return (
      <NativeSelect
        {...shared}
        data={optionsOf(field, value)}
        value={effective === null ? "" : JSON.stringify(effective)}
        onChange={({ currentTarget: { value: chosen } }) =>
          set(chosen === "" ? undefined : (JSON.parse(chosen) as Json))
        }
      />
    )
  }
  if (field.kind === "several") {
    const chosen = Array.isArray(effective) ? effective.map(plain) : []
    return (
      <Checkbox.Group
        {...shared}
        data-wrong={shared.error ? true : undefined}
        value={chosen}
        onChange={(next) => set(field.choices.filter((choice) => next.includes(plain(choice))))}
      >
        <Group gap="md" mt={4}>
          {field.choices.map((choice) => (
            <Checkbox key={plain(choice)} size="xs" value={plain(choice)} label={plain(choice).replaceAll("_", " ")} />
          ))}
        </Group>
      </Checkbox.Group>
    )
  }
  const text = {
    ...shared,
    value: typed?.text ?? write(field.kind, value),
    placeholder: write(field.kind, field.default) || undefined,
    onChange: ({ currentTarget: { value: next } }: { currentTarget: { value: string } }) => {
      const reading = read(field.kind, next)
      set(reading.value, { text: next, problem: reading.problem })
    },
    autoComplete: "off",
    spellCheck: false,
  }
  if (field.kind === "number") return <TextInput {...text} inputMode="decimal" />
  if (field.kind === "text") return <TextInput {...text} />
  return (
    <Textarea
      {...text}
      rows={field.kind === "json" ? 3 : 2}
      classNames={{ ...shared.classNames, input: classes.code }}
    />
  )
})

const HOW_TO_TYPE: Partial<Record<Field["kind"], string>> = {
  lines: "One on each line.",
  pairs: "name=value on each line.",
  json: "As JSON.",
}

function Described({ field, before }: { field: Field; before: string | undefined }) {
  const how = HOW_TO_TYPE[field.kind]
  return (
    <span title={field.description}>
      {before !== undefined && <span className={classes.before}>{before} </span>}
      {how && `${how} `}
      <Prose text={field.description} />
    </span>
  )
}

const FLAG_WORDS = [
  { value: "true", label: "yes" },
  { value: "false", label: "no" },
]

function optionsOf(field: Field, value: Json | undefined) {
  const choices =
    field.kind === "flag"
      ? FLAG_WORDS
      : field.choices.map((choice) => ({
          value: JSON.stringify(choice),
          label: areEqual(choice, field.default) ? `${plain(choice)} (default)` : plain(choice),
        }))
  const given = value === undefined || value === null ? undefined : JSON.stringify(value)
  // What somebody has typed as JSON is shown as it is, though the service will refuse it.
  const isUnknown = given !== undefined && !choices.some((choice) => choice.value === given)
  return [
    ...(field.default === null ? [{ value: "", label: field.kind === "flag" ? "default" : "none" }] : []),
    ...choices,
    ...(isUnknown ? [{ value: given, label: given }] : []),
  ]
}
