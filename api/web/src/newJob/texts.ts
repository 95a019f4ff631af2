/** What is typed into a field, as the value that it stands for, and a value as the text of a field. */
import { asError } from "../api/problems"
import { isObject, type Json } from "../format/json"
import type { Kind } from "./schemas"

/** `value` is undefined where nothing is typed; with a `problem` it is the text itself, which no field takes. */
interface Reading {
  value: Json | undefined
  problem: string | null
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i

export function read(kind: Kind, text: string): Reading {
  if (text.trim() === "") return { value: undefined, problem: null }
  switch (kind) {
    case "number": {
      const isNumber = NUMBER.test(text.trim()) && Number.isFinite(Number(text))
      return isNumber ? { value: Number(text), problem: null } : { value: text, problem: "This is not a number" }
    }
    case "lines":
      return { value: linesOf(text), problem: null }
    case "pairs":
      return readPairs(text)
    case "json":
      return readJson(text)
    default:
      return { value: text, problem: null }
  }
}

/** The text that `read` makes this value of. */
export function write(kind: Kind, value: Json | undefined): string {
  if (value === undefined || value === null) return ""
  if (kind === "lines" && Array.isArray(value)) return value.map(plain).join("\n")
  if (kind === "pairs" && isObject(value)) {
    return Object.entries(value)
      .map(([name, each]) => `${name}=${plain(each)}`)
      .join("\n")
  }
  return plain(value)
}

/** A value in one line: a text as it is, all else as JSON. */
export function plain(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value)
}

function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line.trim() !== "")
}

function readPairs(text: string): Reading {
  const pairs: [string, string][] = []
  for (const line of linesOf(text)) {
    const at = line.indexOf("=")
    const name = line.slice(0, Math.max(0, at)).trim()
    if (name === "") return { value: text, problem: `Write name=value on each line, not "${line.trim()}"` }
    if (pairs.some(([other]) => other === name)) return { value: text, problem: `"${name}" is there twice` }
    pairs.push([name, line.slice(at + 1).trim()])
  }
  return { value: Object.fromEntries(pairs), problem: null }
}

function readJson(text: string): Reading {
  try {
    return { value: JSON.parse(text) as Json, problem: null }
  } catch (error) {
    // What takes anything takes a plain text too; only what begins as JSON has to be that to its end.
    if (!/^\s*["[{]/.test(text)) return { value: text, problem: null }
    return { value: text, problem: `This is not JSON: ${asError(error).message}` }
  }
}
