/** What every part of the form is handed: the draft, what is wrong with it, and how to change it. */
import { valueAt, type Json, type JsonObject, type Path } from "../format/json"
import type { Change, Draft } from "./draft"
import type { Parent } from "./requests"
import type { Field } from "./schemas"

export interface Form {
  draft: Draft
  errors: ReadonlyMap<string, string>
  parent: Parent | null
  change: (change: Change) => void
}

/** Id of a field's input in the document. */
export function inputId(id: string): string {
  return `field-${id}`
}

/** What the job that is cloned has in a field: undefined where nothing is cloned, or it has the same. */
export function valueBefore(form: Form, path: Path): Json | undefined {
  if (!form.parent) return undefined
  return valueAt(form.parent.spec, path)
}

/** How many of these fields are set. */
export function countSet(fields: readonly Field[], spec: JsonObject): number {
  return fields.filter(({ path }) => valueAt(spec, path) !== undefined).length
}

/** How many of these fields, and of those within them, are wrong. */
export function countWrong(fields: readonly Field[], form: Form): number {
  const wrong = [...form.errors.keys()]
  for (const [id, { problem }] of Object.entries(form.draft.texts)) {
    if (problem !== null && !form.errors.has(id)) wrong.push(id)
  }
  return wrong.filter((id) => fields.some((field) => id === field.id || id.startsWith(`${field.id}.`))).length
}

/** Put the cursor into a field, wherever it is folded away; return whether the form has it. */
export function goTo(target: Element | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  const folded = target.closest("details")
  if (folded) folded.open = true
  target.focus()
  // A group has no cursor of its own: its first input has.
  if (document.activeElement !== target) target.querySelector<HTMLElement>("input,select,textarea,button")?.focus()
  target.scrollIntoView({ block: "center" })
  return target.contains(document.activeElement)
}
