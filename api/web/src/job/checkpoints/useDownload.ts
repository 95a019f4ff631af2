/** The download of one checkpoint: how far it is, and what stood in its way. */
import { useEffect, useRef, useState } from "react"

import { asError } from "../../api/problems"
import type { Checkpoint } from "../../api/types"
import { useRights } from "../../session/rights"
import { downloadByBrowser, downloadWithToken } from "./download"

interface Download {
  isBusy: boolean
  /** Bytes that are there; null where the browser has them by itself. */
  bytes: number | null
  error: Error | null
  start: () => void
  stop: () => void
}

export function useDownload(jobId: number, checkpoint: Checkpoint): Download {
  const { asksForTokens } = useRights()
  const [isBusy, setBusy] = useState(false)
  const [bytes, setBytes] = useState<number | null>(null)
  const [error, setError] = useState<Error | null>(null)
  const running = useRef<AbortController | null>(null)
  useEffect(() => () => running.current?.abort(), [])

  const start = () => {
    const controller = new AbortController()
    running.current = controller
    setBusy(true)
    setError(null)
    const done = asksForTokens
      ? downloadWithToken(jobId, checkpoint, { signal: controller.signal, onBytes: setBytes })
      : downloadByBrowser(jobId, checkpoint)
    done
      .catch((failed: unknown) => {
        if (!controller.signal.aborted) setError(asError(failed))
      })
      .finally(() => {
        setBusy(false)
        setBytes(null)
      })
  }
  return { isBusy, bytes, error, start, stop: () => running.current?.abort() }
}
