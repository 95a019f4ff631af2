/** What the form is made of: the schema of a job, and what each recipe takes beside it. */
import { queryOptions } from "@tanstack/react-query"

import { api, askFor, data } from "../api/client"
import { keys } from "../api/queries"
import type { Recipe } from "../api/types"
import { fieldsOf, type Field, type Schema } from "./schemas"

/** The fields of a job, with those of `train` among them. */
export function jobFieldsQuery() {
  return queryOptions({
    queryKey: ["job-fields"],
    queryFn: async ({ signal }) => {
      const document = (await (await askFor("/openapi.json", { signal })).json()) as object
      return fieldsOf({ $ref: "#/components/schemas/JobSpec" }, document)
    },
    staleTime: Number.POSITIVE_INFINITY,
  })
}

export function recipeQuery(name: string) {
  return queryOptions({
    queryKey: [...keys.recipes, name],
    queryFn: ({ signal }) => data(api.GET("/recipes/{name}", { params: { path: { name } }, signal })),
    staleTime: 60_000,
  })
}

/** The options of a recipe; where hosts have it in several releases, those of all. */
export function optionFields(recipe: Recipe): Field[] {
  const fields = recipe.variants.flatMap(({ options_schema: schema }) =>
    fieldsOf(schema as Schema, schema, ["train", "options"]),
  )
  return [...new Map(fields.toReversed().map((field) => [field.id, field])).values()].toReversed()
}
