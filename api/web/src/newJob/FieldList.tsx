/** Inputs for some fields, those of a group in a frame of its own. */
import type { ReactNode } from "react"

import { areEqual, valueAt } from "../format/json"
import { FieldInput } from "./FieldInput"
import { inputId, valueBefore, type Form } from "./form"
import classes from "./newJob.module.css"
import { Prose } from "./Prose"
import type { Field } from "./schemas"
import { plain } from "./texts"

export function FieldList({ fields, form, children }: { fields: readonly Field[]; form: Form; children?: ReactNode }) {
  return (
    <div className={classes.fields}>
      {children}
      {fields.map((field) =>
        field.kind === "group" ? (
          <FieldGroup key={field.id} field={field} form={form} />
        ) : (
          <FormField key={field.id} field={field} form={form} />
        ),
      )}
    </div>
  )
}

export function FormField({ field, form }: { field: Field; form: Form }) {
  return (
    <FieldInput
      field={field}
      value={valueAt(form.draft.spec, field.path)}
      typed={form.draft.texts[field.id]}
      error={form.errors.get(field.id)}
      before={wordsBefore(field, form)}
      change={form.change}
    />
  )
}

function FieldGroup({ field, form }: { field: Field; form: Form }) {
  const error = form.errors.get(field.id)
  return (
    <fieldset className={classes.group} id={inputId(field.id)} tabIndex={-1} aria-invalid={error ? true : undefined}>
      <legend>{field.label}</legend>
      <p className={classes.description} title={field.description}>
        <Prose text={field.description} />
      </p>
      {error && <p className={classes.error}>{error}</p>}
      <FieldList fields={field.fields} form={form} />
    </fieldset>
  )
}

/** What the job that is cloned has there, in words; undefined where it has the same, or none is cloned. */
export function wordsBefore(field: Field, form: Form): string | undefined {
  if (!form.parent) return undefined
  const before = valueBefore(form, field.path)
  if (areEqual(before, valueAt(form.draft.spec, field.path))) return undefined
  const shown = before ?? field.default
  return `Job ${form.parent.job.id} has ${shown === null || shown === "" ? "none" : plain(shown)}.`
}
