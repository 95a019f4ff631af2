/** Brings a checkpoint's file to whoever looks at the page. */
import { addressOf, askFor } from "../../api/client"
import type { Checkpoint } from "../../api/types"
import { save, saveFrom } from "../../parts/saving"

const TOLD_EVERY_MS = 250

/** Path of its file at the API. */
function pathOfFile(jobId: number, checkpointId: number): string {
  return `/jobs/${jobId}/checkpoints/${checkpointId}/file`
}

/** What the file is called where it is saved, as the API calls it too. */
function nameOfFile(jobId: number, { step, path }: Pick<Checkpoint, "step" | "path">): string {
  return `job-${jobId}-step-${step}${/\.[A-Za-z0-9]{1,16}$/.exec(path)?.[0] ?? ""}`
}

/**
 * Have the browser fetch the file by itself: it goes to the disk as it comes, however large. A browser sends no token
 * of ours, so this is for a service that asks for none. Rejects with the API's refusal, asked for with one byte first,
 * which a browser would save as if it were the file.
 */
export async function downloadByBrowser(jobId: number, checkpoint: Checkpoint): Promise<void> {
  const path = pathOfFile(jobId, checkpoint.id)
  await askFor(path, { headers: { Range: "bytes=0-0" }, cache: "no-store" })
  saveFrom(addressOf(path), nameOfFile(jobId, checkpoint))
}

/** Fetch the file with the token and save it; `onBytes` is told how many are there, a few times a second. */
export async function downloadWithToken(
  jobId: number,
  checkpoint: Checkpoint,
  { signal, onBytes }: { signal: AbortSignal; onBytes: (bytes: number) => void },
): Promise<void> {
  const response = await askFor(pathOfFile(jobId, checkpoint.id), { signal, cache: "no-store" })
  let bytes = 0
  let toldAt = 0
  const counted = response.body?.pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(piece, controller) {
        bytes += piece.byteLength
        // It comes in pieces of 64 kB, of which a large file has tens of thousands.
        if (performance.now() - toldAt >= TOLD_EVERY_MS) {
          toldAt = performance.now()
          onBytes(bytes)
        }
        controller.enqueue(piece)
      },
    }),
  )
  save(await new Response(counted).blob(), nameOfFile(jobId, checkpoint))
}
