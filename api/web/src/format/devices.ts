/** What a stored spec asks for, in few words. It may be of another release, so each field is looked at before it is used. */
import { isObject } from "./json"

type Fields = Record<string, unknown>

/** The devices: `cuda:0,1`, `4 × CPU`, `any 2 GPUs ≥ 40 GB on atlas`, `cuda:0 × 2 hosts`. */
export function devicesInWords(spec: Fields): string {
  const { device, nodes } = spec
  const host = textIn(spec, "host") ?? (isObject(device) ? textIn(device, "host") : undefined)
  const each = isObject(device) ? countInWords(device) : listInWords(device, spec.nproc_per_node)
  if (typeof nodes === "number" && nodes > 1) return `${each} × ${nodes} hosts`
  return host === undefined ? each : `${each} on ${host}`
}

/** What is trained: its recipe, and the model or, of a program of one's own, its file or module. */
export function trainingInWords(spec: Fields): { recipe: string; model: string; data: string } {
  const train = isObject(spec.train) ? spec.train : {}
  const options = isObject(train.options) ? train.options : {}
  const program = textIn(options, "script") ?? textIn(options, "module")
  return {
    recipe: textIn(train, "recipe") ?? "",
    model: textIn(train, "model") ?? program ?? "",
    data: textIn(train, "data") ?? "",
  }
}

function countInWords(device: Fields): string {
  const many = Number(device.count)
  const named = textIn(device, "name")
  const memory = typeof device.min_memory_gb === "number" ? ` ≥ ${device.min_memory_gb} GB` : ""
  return `any ${many}${named ? ` ${named}` : ""} GPU${many === 1 ? "" : "s"}${memory}`
}

function listInWords(device: unknown, processes: unknown): string {
  if (device === "cpu") return typeof processes === "number" && processes > 1 ? `${processes} × CPU` : "CPU"
  if (typeof device !== "string") return "?"
  return device.replaceAll(",cuda:", ",")
}

function textIn(fields: Fields, name: string): string | undefined {
  const value = fields[name]
  return typeof value === "string" && value !== "" ? value : undefined
}
