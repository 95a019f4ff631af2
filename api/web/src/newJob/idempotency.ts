/** The key under which a request is sent: the same for the same body, so that what was stored is not stored twice. */

const KEPT = "rankzero.sent"

interface Sent {
  request: string
  key: string
}

/** It outlives a reload: whether a request without an answer was stored, nobody here can know. */
export function keyFor(request: string): string {
  const sent = last()
  if (sent?.request === request) return sent.key
  const key = newKey()
  sessionStorage.setItem(KEPT, JSON.stringify({ request, key } satisfies Sent))
  return key
}

/** The request was answered: the same one, sent again, is another job. The key of another one stays. */
export function forgetKey(request: string): void {
  if (last()?.request === request) sessionStorage.removeItem(KEPT)
}

function last(): Sent | null {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT) ?? "null") as Sent | null
  } catch {
    return null
  }
}

/** `crypto.randomUUID` is missing where the page comes by plain HTTP from another machine. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("")
}
