/** A job's labels while they are edited, and what of that the service is told. */

/** One label of the form; `id` tells two of them apart while their keys are being typed. */
export interface LabelField {
  id: number
  key: string
  value: string
}

export function labelFields(labels: Readonly<Record<string, string>>): LabelField[] {
  return Object.entries(labels).map(([key, value], id) => ({ id, key, value }))
}

/** What has changed: labels that are set, and null for those that are gone. A field without a key counts for nothing. */
export function labelChanges(
  before: Readonly<Record<string, string>>,
  fields: readonly LabelField[],
): Record<string, string | null> {
  const after = new Map(fields.filter(({ key }) => key.trim() !== "").map(({ key, value }) => [key.trim(), value]))
  const gone = Object.keys(before).filter((key) => !after.has(key))
  const set = [...after].filter(([key, value]) => before[key] !== value)
  return Object.fromEntries([...set, ...gone.map((key) => [key, null] as const)])
}
