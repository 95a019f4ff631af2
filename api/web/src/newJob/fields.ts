/** Which fields stand where on the form; what a schema has beyond them comes last, so that nothing is left out. */
import { SCRIPT } from "./draft"
import type { Field } from "./schemas"

/** What most trainings set, in this order. */
const ESSENTIAL = ["image_size", "epochs", "batch", "lr", "amp", "seed"]
/** Fields with inputs of their own: `RecipeFields`, `PlacementFields`. */
const RECIPE = ["recipe", "model", "data", "options"]
const PLACEMENT = ["device", "nproc_per_node", "host", "nodes"]
/** What is asked first of policy. */
const POLICY = ["name", "priority", "labels", "preemptible", "time_limit_s"]

export type Section = "recipe" | "essential" | "more" | "placement" | "policy" | "morePolicy"
type FormFields = Readonly<Record<Section, readonly Field[]>>

export function arranged(job: readonly Field[], recipe: string, isAdmin: boolean): FormFields {
  const train = job.find(({ id }) => id === "train")?.fields ?? []
  // A program of one's own takes what it is told in its arguments, and secrets, which no training takes.
  const isScript = recipe === SCRIPT
  const own = train.filter((field) => !RECIPE.includes(nameOf(field)))
  const rest = job.filter(
    ({ id }) =>
      id !== "train" && !PLACEMENT.includes(id) && (isScript || id !== "secrets") && (isAdmin || id !== "user"),
  )
  return {
    recipe: named(train, isScript ? ["recipe"] : ["recipe", "model", "data"]),
    essential: isScript ? [] : named(own, ESSENTIAL),
    more: isScript ? [] : own.filter((field) => !ESSENTIAL.includes(nameOf(field))),
    placement: named(job, PLACEMENT),
    policy: named(rest, POLICY),
    morePolicy: rest.filter(({ id }) => !POLICY.includes(id)),
  }
}

function named(fields: readonly Field[], names: readonly string[]): Field[] {
  return names.flatMap((name) => fields.find((field) => nameOf(field) === name) ?? [])
}

function nameOf(field: Field): string {
  return field.path.at(-1) ?? ""
}
