/** A JSON value as Python writes it. */

const INDENT = "    "

export function pythonLiteral(value: unknown, depth = 0): string {
  if (value === null || value === undefined) return "None"
  if (value === true) return "True"
  if (value === false) return "False"
  if (Array.isArray(value)) {
    return value.length === 0 ? "[]" : `[${value.map((each) => pythonLiteral(each, depth)).join(", ")}]`
  }
  if (typeof value === "object") {
    const fields = Object.entries(value)
    if (fields.length === 0) return "{}"
    const inner = INDENT.repeat(depth + 1)
    const lines = fields.map(([key, each]) => `${inner}${JSON.stringify(key)}: ${pythonLiteral(each, depth + 1)},`)
    return ["{", ...lines, `${INDENT.repeat(depth)}}`].join("\n")
  }
  // A text or a number is written alike in both; so are the escapes that JSON uses.
  return JSON.stringify(value)
}
