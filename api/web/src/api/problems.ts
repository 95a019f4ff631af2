/** What went wrong with a request, as errors that say it in the service's own words. */
import type { FieldError } from "./types"

/** The API refused a request: a problem document (RFC 9457). */
export class ProblemError extends Error {
  override name = "ProblemError"

  constructor(
    readonly status: number,
    readonly detail: string,
    /** What is wrong with which field (`train.batch`); empty where no field is at fault. */
    readonly fields: FieldError[] = [],
    /** What the service's log knows the request by. */
    readonly requestId?: string,
    /** Seconds after which to try again, where the service named them. */
    readonly retryAfterS?: number,
  ) {
    super(detail)
  }
}

/** No answer came: the service is down, or the network is. */
export class UnreachableError extends Error {
  override name = "UnreachableError"

  constructor(cause?: unknown) {
    super("The service does not answer.", { cause })
  }
}

/** Return the error that an answer with a status of 400 or above stands for; `body` is its JSON, if it had any. */
export function problemOf(response: Response, body: unknown): ProblemError {
  const problem = isRecord(body) ? body : {}
  const title = text(problem.title) ?? (response.statusText || `status ${response.status}`)
  const retryAfter = Number(response.headers.get("Retry-After") ?? Number.NaN)
  return new ProblemError(
    response.status,
    text(problem.detail) ?? title,
    Array.isArray(problem.errors) ? problem.errors.filter(isFieldError) : [],
    text(problem.request_id) ?? response.headers.get("X-Request-ID") ?? undefined,
    Number.isFinite(retryAfter) ? retryAfter : undefined,
  )
}

/** Whether trying again may help: nothing answered, or the service said that it cannot now. */
export function isPassing(error: unknown): boolean {
  return (
    error instanceof UnreachableError || (error instanceof ProblemError && [429, 502, 503, 504].includes(error.status))
  )
}

/** Return what was thrown as an error: anything may be thrown. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined
}

function isFieldError(value: unknown): value is FieldError {
  return isRecord(value) && typeof value.field === "string" && typeof value.message === "string"
}
