/** Submitting: once for each press, and once for each job, however often it is pressed or the network fails. */
import { useQueryClient } from "@tanstack/react-query"
import { useEffect, useRef, useState } from "react"
import { useLocation } from "wouter"

import { asError } from "../api/problems"
import { keys } from "../api/queries"
import { notices } from "../parts/notices"
import { forgetKey, keyFor } from "./idempotency"
import { send, type JobRequest } from "./requests"

interface Submitting {
  isBusy: boolean
  submit: (request: JobRequest) => Promise<void>
}

/**
 * `onDone` is told before the job's page is shown, `onFailed` with what was answered in place of a job. Where the form was
 * left before the answer, a notice tells it and nobody is led away from where they are.
 */
export function useSubmit(onDone: () => void, onFailed: (error: Error) => void): Submitting {
  const client = useQueryClient()
  const [, go] = useLocation()
  const [isBusy, setBusy] = useState(false)
  // Two presses may come before the first of them is drawn.
  const isSending = useRef(false)
  const isThere = useRef(false)
  useEffect(() => {
    isThere.current = true
    return () => {
      isThere.current = false
    }
  }, [])

  const submit = async (request: JobRequest) => {
    if (isSending.current) return
    isSending.current = true
    setBusy(true)
    const sent = JSON.stringify(request)
    try {
      const job = await send(request, keyFor(sent))
      forgetKey(sent)
      onDone()
      client.setQueryData(keys.job(job.id), job)
      void client.invalidateQueries({ queryKey: keys.jobs })
      notices.done([`Job ${job.id} is submitted.`, ...job.warnings].join(" "))
      // Until its page is there this one still is, and a second press must find nothing to send.
      if (isThere.current) go(`/jobs/${job.id}`)
    } catch (error) {
      isSending.current = false
      setBusy(false)
      const failure = asError(error)
      if (isThere.current) onFailed(failure)
      else notices.failed(`The job was not submitted: ${failure.message}`)
    }
  }
  return { isBusy, submit }
}
