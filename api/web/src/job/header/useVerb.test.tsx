import { QueryClient, QueryClientProvider } from "@tanstack/react-query"
import { act, renderHook, waitFor } from "@testing-library/react"
import { afterEach, expect, test, vi } from "vitest"

import { outcomeOf, useVerb } from "./useVerb"

afterEach(() => vi.unstubAllGlobals())

test("two presses in a row tell a job once, and after the answer it can be told again", async () => {
  const asked = vi.fn(() => Promise.resolve(Response.json({ id: 7, state: "paused", intent: "pause" })))
  vi.stubGlobal("fetch", asked)
  const client = new QueryClient()
  const { result } = renderHook(() => useVerb(), {
    wrapper: ({ children }) => <QueryClientProvider client={client}>{children}</QueryClientProvider>,
  })
  act(() => {
    result.current.onVerb("pause", 7)
    result.current.onVerb("pause", 7)
  })
  await waitFor(() => expect(client.isMutating()).toBe(0))
  expect(asked).toHaveBeenCalledOnce()
  act(() => result.current.onVerb("resume", 7))
  await waitFor(() => expect(asked).toHaveBeenCalledTimes(2))
})

test("what a verb came to is told by the state that the job has now", () => {
  expect(outcomeOf("cancel", { id: 7, state: "cancelled" })).toBe("Job 7 is cancelled")
  expect(outcomeOf("cancel", { id: 7, state: "running" })).toBe("Job 7 ends within seconds")
  expect(outcomeOf("resume", { id: 7, state: "running" })).toBe("Job 7 goes on")
})
