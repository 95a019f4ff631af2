/** What is wrong with the job as it stands: by the dry run, and by the last attempt to submit it. */
import { useMemo, useState } from "react"

import { isPassing, ProblemError } from "../api/problems"
import type { FieldError } from "../api/types"
import { areEqual, type JsonObject } from "../format/json"
import { fieldOf, ofWhatIsSet, placed, stillTrue } from "./refusals"
import type { DryRun } from "./useDryRun"

interface Refusals {
  /** Errors by the field that shows them. */
  at: ReadonlyMap<string, string>
  all: readonly FieldError[]
  /** Why the job could not be submitted, where that is said at no field. */
  failure: Error | null
  /** Whether it may help to send it again as it is. */
  isPassing: boolean
  onFailed: (error: Error) => void
  /** Id of the form's field that a path of the spec belongs to. */
  homeOf: (path: string) => string | undefined
}

interface Attempt {
  spec: JsonObject
  error: Error
}

export function useRefusals(spec: JsonObject, { answer, isCurrent }: DryRun, ids: ReadonlySet<string>): Refusals {
  const [attempt, setAttempt] = useState<Attempt | null>(null)
  const all = useMemo(() => {
    const errors = [...planErrors(), ...attemptErrors()]
    return [...new Map(errors.map((error) => [`${error.field} ${error.message}`, error])).values()]

    function planErrors(): FieldError[] {
      if (!answer) return []
      const found = stillTrue({ spec: answer.spec, errors: fieldsOf(answer.error) }, spec)
      return attempt ? found : ofWhatIsSet(found, spec)
    }

    function attemptErrors(): FieldError[] {
      // What the service says of the job as it is now counts for more than what it said of an earlier one.
      if (!attempt || (isCurrent && !areEqual(attempt.spec, spec))) return []
      return stillTrue({ spec: attempt.spec, errors: fieldsOf(attempt.error) }, spec)
    }
  }, [answer, attempt, isCurrent, spec])
  const at = useMemo(() => placed(all, ids).at, [all, ids])

  const isOfThis = attempt !== null && areEqual(attempt.spec, spec)
  const isSaidAtFields =
    attempt !== null && fieldsOf(attempt.error).length > 0 && placed(fieldsOf(attempt.error), ids).rest.length === 0
  return {
    at,
    all,
    failure: isOfThis && !isSaidAtFields ? attempt.error : null,
    isPassing: attempt !== null && isPassing(attempt.error),
    onFailed: (error) => setAttempt({ spec, error }),
    homeOf: (path) => fieldOf(path, ids),
  }
}

function fieldsOf(error: Error | null): readonly FieldError[] {
  return error instanceof ProblemError ? error.fields : []
}
