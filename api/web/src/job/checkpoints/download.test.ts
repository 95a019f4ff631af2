import { expect, it, vi } from "vitest"

import type { Checkpoint } from "../../api/types"

const PIECES = 1_000

vi.mock("../../api/client", () => ({
  askFor: () => {
    let sent = 0
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent++ < PIECES) controller.enqueue(new Uint8Array(10))
        else controller.close()
      },
    })
    return Promise.resolve(new Response(body))
  },
}))

const save = vi.hoisted(() => vi.fn())
vi.mock("../../parts/saving", () => ({ save }))

const { downloadWithToken } = await import("./download")

it("tells how far it is a few times a second, however many pieces come, and saves all of them", async () => {
  const clock = vi.spyOn(performance, "now")
  let now = 1_000
  // A hundred pieces a second, as ten seconds pass.
  clock.mockImplementation(() => (now += 10))
  const onBytes = vi.fn()
  const checkpoint = { id: 3, step: 40, path: "step-40.pt" } as Checkpoint
  await downloadWithToken(7, checkpoint, { signal: new AbortController().signal, onBytes })
  clock.mockRestore()
  expect(onBytes.mock.calls.length).toBeGreaterThan(10)
  expect(onBytes.mock.calls.length).toBeLessThanOrEqual(41)
  const [blob, name] = save.mock.calls[0] as [Blob, string]
  expect([blob.size, name]).toEqual([10 * PIECES, "job-7-step-40.pt"])
})
