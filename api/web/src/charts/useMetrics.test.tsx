import { renderHook, waitFor } from "@testing-library/react"
import { afterEach, expect, it, vi } from "vitest"

import type { Job } from "../api/types"
import type { FeedListener } from "../live/useFeed"

const GET = vi.hoisted(() => vi.fn((path: string) => ({ items: path.endsWith("names") ? [{}] : [] })))
vi.mock("../api/client", () => ({ api: { GET }, data: (answer: unknown) => Promise.resolve(answer) }))

const fed = vi.hoisted(() => vi.fn<(listener: FeedListener) => void>())
vi.mock("../live/useFeed", () => ({ useFeed: fed }))

const { useMetrics } = await import("./useMetrics")

function job(id: number, state: Job["state"]): Pick<Job, "id" | "state"> {
  return { id, state }
}

function readings(): number {
  return GET.mock.calls.filter(([path]) => path.endsWith("/metrics")).length
}

afterEach(() => {
  GET.mockClear()
  fed.mockClear()
})

it("holds no stream for jobs that have ended, and reads each once", async () => {
  const { result, rerender } = renderHook(() => useMetrics([job(2, "failed"), job(1, "succeeded")]))
  await waitFor(() => expect([...result.current.snapshot.jobs.keys()].sort()).toEqual([1, 2]))
  rerender()
  expect(fed.mock.calls.map(([{ jobs }]) => jobs)).not.toContainEqual(expect.arrayContaining([1]))
  expect(fed.mock.lastCall?.[0].jobs).toEqual([])
  expect(readings()).toBe(2)
})

it("reads a job with its stream, and once more when it has ended", async () => {
  const { result, rerender } = renderHook(({ state }) => useMetrics([job(7, state)]), {
    initialProps: { state: "running" as Job["state"] },
  })
  expect(fed.mock.lastCall?.[0].jobs).toEqual([7])
  expect(readings()).toBe(0)
  fed.mock.lastCall?.[0].onShow()
  await waitFor(() => expect(result.current.snapshot.jobs.has(7)).toBe(true))
  rerender({ state: "succeeded" })
  expect(fed.mock.lastCall?.[0].jobs).toEqual([])
  await waitFor(() => expect(readings()).toBe(2))
})
