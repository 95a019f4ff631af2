import { QueryClient, QueryObserver } from "@tanstack/react-query"
import { afterEach, beforeEach, expect, test, vi } from "vitest"

import { StaleAnswers } from "./staleAnswers"

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** A query that is shown, whose answers take as long as they are told to and count up. */
async function shown(takes_ms: number) {
  const client = new QueryClient()
  let asked = 0
  let aborted = 0
  const queryFn = ({ signal }: { signal: AbortSignal }) => {
    asked += 1
    const answer = asked
    signal.addEventListener("abort", () => (aborted += 1))
    return new Promise<number>((resolve) => setTimeout(() => resolve(answer), takes_ms))
  }
  const forget = new QueryObserver(client, { queryKey: ["hosts"], queryFn }).subscribe(() => undefined)
  await vi.advanceTimersByTimeAsync(takes_ms)
  const counted = () => ({ asked, aborted, shows: client.getQueryData(["hosts"]) })
  return { stale: new StaleAnswers(client), counted, forget }
}

test("news that come faster than answers break off no reading, and the last is in what is read last", async () => {
  const { stale, counted, forget } = await shown(400)
  for (let passed_ms = 0; passed_ms < 5_000; passed_ms += 100) {
    stale.add(["hosts"])
    await vi.advanceTimersByTimeAsync(100)
  }
  expect(counted().aborted).toBe(0)
  expect(counted().shows).toBeGreaterThan(5)
  const before = counted().asked
  stale.add(["hosts"])
  await vi.advanceTimersByTimeAsync(5_000)
  expect(counted().asked).toBeGreaterThan(before)
  expect(counted().shows).toBe(counted().asked)
  forget()
})

test("a burst of news is read once", async () => {
  const { stale, counted, forget } = await shown(10)
  for (let each = 0; each < 50; each += 1) stale.add(["hosts"])
  await vi.advanceTimersByTimeAsync(5_000)
  expect(counted().asked).toBe(2)
  forget()
})
