/** A job's number as people and addresses write it. */

/** No number of fifteen digits loses one as a double. */
const NUMBER = /^[1-9]\d{0,14}$/

/** The number that a text is; null where it is none that a job can have. */
export function jobIdIn(text: string): number | null {
  return NUMBER.test(text) ? Number(text) : null
}

/** The numbers in `3,5`, each once and in their order; what is none is passed over. */
export function jobIdsIn(text: string | null): number[] {
  const ids = (text ?? "").split(",").flatMap((part) => jobIdIn(part) ?? [])
  return [...new Set(ids)]
}
