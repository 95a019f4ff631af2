/** The job that is being written: its spec, of which only what was set is there, and the texts as they were typed. */
import { asError } from "../api/problems"
import { isObject, withValue, type Json, type JsonObject, type Path } from "../format/json"

export interface TypedText {
  text: string
  /** Why it stands for no value. */
  problem: string | null
}

export interface Draft {
  spec: JsonObject
  /** By the field's id: what was typed there last, such as `0.` on the way to `0.1`. */
  texts: Readonly<Record<string, TypedText>>
  /** The spec as somebody types it as JSON; null while the fields have the last word. */
  json: string | null
}

export type Change =
  | { kind: "set"; path: Path; value: Json | undefined; typed?: TypedText }
  | { kind: "recipe"; recipe: string | undefined }
  | { kind: "json"; text: string }
  | { kind: "replace"; spec: JsonObject }

export const SCRIPT = "script"

export function draftOf(spec: JsonObject): Draft {
  return { spec, texts: {}, json: null }
}

export function changed(draft: Draft, change: Change): Draft {
  switch (change.kind) {
    case "set": {
      const id = change.path.join(".")
      const spec = withTrain(withValue(draft.spec, change.path, change.value))
      // A number of devices that is being retyped is still a number of devices, and not any device.
      if (change.path[0] === "device" && change.path.length > 1) spec.device ??= {}
      const texts = Object.entries(draft.texts).filter(([other]) => other !== id && !other.startsWith(`${id}.`))
      if (change.typed) texts.push([id, change.typed])
      return { spec, texts: Object.fromEntries(texts), json: null }
    }
    case "recipe": {
      // Model and options are the recipe's own, and a program of one's own takes nothing of a training at all.
      const train = isObject(draft.spec.train) ? draft.spec.train : {}
      const kept = Object.entries(train).filter(([name]) => !["recipe", "model", "options"].includes(name))
      const own: JsonObject = change.recipe === SCRIPT ? {} : Object.fromEntries(kept)
      if (change.recipe !== undefined) own.recipe = change.recipe
      const texts = Object.entries(draft.texts).filter(([id]) => !id.startsWith("train."))
      return { spec: { ...draft.spec, train: own }, texts: Object.fromEntries(texts), json: null }
    }
    case "json": {
      const spec = readSpec(change.text)
      return typeof spec === "string" ? { ...draft, json: change.text } : { spec, texts: {}, json: change.text }
    }
    case "replace":
      return draftOf(withTrain(change.spec))
  }
}

/** Why what is typed as JSON is no spec; null where it is one. */
export function jsonProblem(draft: Draft): string | null {
  const spec = draft.json === null ? null : readSpec(draft.json)
  return typeof spec === "string" ? spec : null
}

/** Whether something is typed that stands for no value, so that the spec is not what is shown. */
export function isUnreadable(draft: Draft): boolean {
  return jsonProblem(draft) !== null || Object.values(draft.texts).some(({ problem }) => problem !== null)
}

export function jsonOf(draft: Draft): string {
  return draft.json ?? JSON.stringify(draft.spec, null, 2)
}

/** The spec that a text stands for, or what is wrong with it. */
function readSpec(text: string): JsonObject | string {
  try {
    const value = JSON.parse(text) as unknown
    return isObject(value) ? value : "A job is an object: { … }"
  } catch (error) {
    return `This is not JSON: ${asError(error).message}`
  }
}

/** A spec always has its `train`, though nothing may be set there yet. */
function withTrain(spec: JsonObject): JsonObject {
  return { ...spec, train: spec.train ?? {} }
}
