/** What to train: recipe, model and data, as the hosts have them. */
import { Autocomplete, NativeSelect } from "@mantine/core"
import { useQuery } from "@tanstack/react-query"

import { dataSetsQuery, recipesQuery } from "../api/queries"
import { valueAt } from "../format/json"
import { wordsBefore } from "./FieldList"
import { inputId, type Form } from "./form"
import classes from "./newJob.module.css"
import { Prose } from "./Prose"
import type { Field } from "./schemas"

/** A list of models is long; typing finds the rest. */
const MOST_SHOWN = 100

export function RecipeFields({ fields, recipe, form }: { fields: readonly Field[]; recipe: string; form: Form }) {
  const recipes = useQuery(recipesQuery())
  const dataSets = useQuery(dataSetsQuery())
  const known = recipes.data?.find(({ name }) => name === recipe)
  const names = recipes.data?.map(({ name }) => name) ?? []
  return fields.map((field) => {
    switch (field.path.at(-1)) {
      case "recipe":
        return (
          <NativeSelect
            key={field.id}
            {...sharedOf(field, form, known?.description ?? field.description)}
            data={names.includes(recipe) ? names : [recipe, ...names]}
            value={recipe}
            onChange={({ currentTarget: { value } }) =>
              form.change({ kind: "recipe", recipe: value === field.default ? undefined : value })
            }
          />
        )
      case "model":
        return (
          <Suggested
            key={field.id}
            field={field}
            form={form}
            description={known ? `${known.models.length} models; type to find one.` : field.description}
            suggestions={known?.models ?? []}
          />
        )
      default:
        return (
          <Suggested
            key={field.id}
            field={field}
            form={form}
            description="A data set by name, or the path of a folder on the host that trains."
            suggestions={dataSets.data?.map(({ name }) => name) ?? []}
          />
        )
    }
  })
}

interface SuggestedProps {
  field: Field
  form: Form
  description: string
  suggestions: readonly string[]
}

function Suggested({ field, form, description, suggestions }: SuggestedProps) {
  const value = valueAt(form.draft.spec, field.path)
  return (
    <Autocomplete
      {...sharedOf(field, form, description)}
      data={[...suggestions]}
      limit={MOST_SHOWN}
      value={typeof value === "string" ? value : ""}
      onChange={(next) => form.change({ kind: "set", path: field.path, value: next === "" ? undefined : next })}
      comboboxProps={{ transitionProps: { duration: 0 } }}
      autoComplete="off"
      spellCheck={false}
    />
  )
}

function sharedOf(field: Field, form: Form, description: string) {
  const before = wordsBefore(field, form)
  return {
    id: inputId(field.id),
    size: "xs",
    label: field.label,
    description: (
      <>
        {before !== undefined && <span className={classes.before}>{before} </span>}
        <Prose text={description} />
      </>
    ),
    error: form.errors.get(field.id),
    classNames: { description: classes.description },
  }
}
