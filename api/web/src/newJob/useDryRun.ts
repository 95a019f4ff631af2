/** What would come of the job as it stands, asked for as somebody types and again now and then. */
import { useEffect, useState } from "react"

import { asError, isPassing } from "../api/problems"
import type { Plan } from "../api/types"
import type { JsonObject } from "../format/json"
import { plan } from "./requests"

/** How long typing rests before the question is asked. */
const REST_MS = 400
/** How long an answer counts: others' jobs begin and end meanwhile. */
const AGAIN_MS = 10_000
/** How long until a service that is away is asked again. */
const RETRY_MS = 3_000

interface Answer {
  /** What was asked about, as JSON. */
  asked: string
  spec: JsonObject
  plan: Plan | null
  error: Error | null
}

export interface DryRun {
  /** The newest answer, which may be of the job as it was before; null before the first. */
  answer: Answer | null
  /** Whether it is of the job as it is. */
  isCurrent: boolean
}

/** `spec` is null where there is nothing to ask about. */
export function useDryRun(spec: JsonObject | null): DryRun {
  const [answer, setAnswer] = useState<Answer | null>(null)
  const asked = spec === null ? null : JSON.stringify(spec)

  useEffect(() => {
    if (asked === null) return
    const stop = new AbortController()
    const about = JSON.parse(asked) as JsonObject
    const ask = async () => {
      let again = AGAIN_MS
      if (!document.hidden) {
        try {
          const found = await plan(about, stop.signal)
          if (stop.signal.aborted) return
          setAnswer({ asked, spec: about, plan: found, error: null })
        } catch (thrown) {
          if (stop.signal.aborted) return
          const error = asError(thrown)
          setAnswer({ asked, spec: about, plan: null, error })
          // What is refused once is refused again.
          if (!isPassing(error)) return
          again = RETRY_MS
        }
      }
      timer = setTimeout(() => void ask(), again)
    }
    let timer = setTimeout(() => void ask(), REST_MS)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [asked])

  return { answer, isCurrent: answer !== null && answer.asked === asked }
}
