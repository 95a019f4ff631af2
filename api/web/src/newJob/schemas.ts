/** Which fields a JSON schema asks for, and what kind of input each of them takes. */
import { areEqual, isObject, type Json, type JsonObject, type Path } from "../format/json"

export interface Schema {
  type?: string
  $ref?: string
  anyOf?: Schema[]
  allOf?: Schema[]
  enum?: Json[]
  const?: Json
  default?: Json
  description?: string
  properties?: Record<string, Schema>
  patternProperties?: Record<string, Schema>
  additionalProperties?: boolean | Schema
  items?: Schema
}

/** The document in which `$ref` is looked up: an OpenAPI document, or a schema with its `$defs`. */
type Root = object

export type Kind =
  /** One of `choices`. */
  | "choice"
  /** Any of `choices`. */
  | "several"
  | "flag"
  | "number"
  | "text"
  /** A list of texts, one on each line. */
  | "lines"
  /** Texts by name, `name=value` on each line. */
  | "pairs"
  /** An object of `fields`. */
  | "group"
  /** Whatever else: it is typed as JSON. */
  | "json"

export interface Field {
  path: Path
  /** The path as the service names it in an error: `train.batch`. */
  id: string
  label: string
  description: string
  kind: Kind
  default: Json
  choices: readonly Json[]
  /** What an object in its place holds, also where it need not be one. */
  fields: readonly Field[]
}

/** Return the fields of an object's schema, in its own order. */
export function fieldsOf(schema: Schema, root: Root, within: Path = []): Field[] {
  const properties = resolved(schema, root).properties ?? {}
  return Object.entries(properties).map(([name, each]) => fieldOf(name, each, root, within))
}

function fieldOf(name: string, schema: Schema, root: Root, within: Path): Field {
  const path = [...within, name]
  const inner = withoutNull(resolved(schema, root), root)
  const kind = kindOf(inner, root)
  return {
    path,
    id: path.join("."),
    label: labelOf(name),
    // A reference may have a description of its own beside it, which says more of this use of it.
    description: (schema.description ?? inner.description ?? "").replaceAll("\n", " "),
    kind,
    default: schema.default ?? null,
    choices: kind === "choice" ? choicesOf(inner) : kind === "several" ? choicesOf(itemsOf(inner, root)) : [],
    fields: (inner.anyOf ?? [inner]).flatMap((part) => fieldsOf(part, root, path)),
  }
}

/** Return every field and all within them. */
export function flattened(fields: readonly Field[]): Field[] {
  return fields.flatMap((field) => [field, ...flattened(field.fields)])
}

const ABBREVIATIONS = /\b(lr|amp|ema|nbs|bn|gb|cpu|gpu)\b/g

/** `warmup_epochs` → `Warmup epochs`, `sync_bn` → `Sync BN`, `time_limit_s` → `Time limit (s)`. */
function labelOf(name: string): string {
  const words = name
    .replace(/_(s|gb)$/, " ($1)")
    .replaceAll("_", " ")
    .replaceAll(ABBREVIATIONS, (word) => word.toUpperCase())
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function kindOf(schema: Schema, root: Root): Kind {
  if (choicesOf(schema).length > 0) return "choice"
  switch (schema.type) {
    case "boolean":
      return "flag"
    case "integer":
    case "number":
      return "number"
    case "string":
      return "text"
    case "array": {
      const items = itemsOf(schema, root)
      if (choicesOf(items).length > 0) return "several"
      return items.type === "string" ? "lines" : "json"
    }
    case "object":
      if (schema.properties && Object.keys(schema.properties).length > 0) return "group"
      return hasTexts(schema, root) ? "pairs" : "json"
    default:
      return "json"
  }
}

function hasTexts(schema: Schema, root: Root): boolean {
  const values = Object.values(schema.patternProperties ?? {})
  if (isObject(schema.additionalProperties)) values.push(schema.additionalProperties)
  return values.length > 0 && values.every((each) => resolved(each, root).type === "string")
}

function choicesOf(schema: Schema): readonly Json[] {
  if (schema.enum) return schema.enum
  if (schema.const !== undefined) return [schema.const]
  // `Literal["a"] | Literal["b"]`: a choice, as long as every part of it is one.
  const parts = schema.anyOf?.map(choicesOf) ?? []
  return parts.every((part) => part.length > 0) ? parts.flat() : []
}

function itemsOf(schema: Schema, root: Root): Schema {
  return schema.items ? resolved(schema.items, root) : {}
}

/** The schema without the part that lets it be null, which the form has as an empty input. */
function withoutNull(schema: Schema, root: Root): Schema {
  if (!schema.anyOf) return schema
  const parts = schema.anyOf.map((part) => resolved(part, root)).filter((part) => part.type !== "null")
  const [only] = parts
  return parts.length === 1 && only ? only : { ...schema, anyOf: parts }
}

/** The schema that a reference leads to; what a reference leads nowhere for takes anything. */
function resolved(schema: Schema, root: Root): Schema {
  const [only] = schema.allOf ?? []
  if (only && schema.allOf?.length === 1) return resolved(only, root)
  if (schema.$ref === undefined) return schema
  let found: unknown = root
  for (const name of schema.$ref.replace(/^#\//, "").split("/")) {
    found = isObject(found) ? found[name] : undefined
  }
  return isObject(found) ? resolved(found, root) : {}
}

/** Return a spec with only what differs from the defaults of its fields; what no field is known for stays. */
export function sparse(value: JsonObject, fields: readonly Field[]): JsonObject {
  const kept: JsonObject = {}
  for (const [name, each] of Object.entries(value)) {
    const field = fields.find((candidate) => candidate.path.at(-1) === name)
    if (!field) kept[name] = each
    else if (areEqual(each, field.default)) continue
    else if (field.fields.length > 0 && isObject(each)) kept[name] = sparse(each, field.fields)
    else kept[name] = each
  }
  return kept
}
