import { afterEach, beforeEach, expect, test, vi } from "vitest"

import { persistently } from "./lazyPart"

const part = { default: () => null }
const reload = vi.fn()

beforeEach(() => {
  vi.useFakeTimers()
  sessionStorage.clear()
  vi.stubGlobal("location", { reload })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test("a part that was asked for while the service is away is there once it is back", async () => {
  let isAway = true
  const answer = () => (isAway ? Promise.reject(new TypeError("away")) : Promise.resolve(new Response()))
  vi.stubGlobal("fetch", vi.fn(answer))
  const load = vi.fn(() => (isAway ? Promise.reject(new TypeError("away")) : Promise.resolve(part)))
  const loaded = persistently(load)
  await vi.advanceTimersByTimeAsync(30_000)
  isAway = false
  await vi.advanceTimersByTimeAsync(2_000)
  await expect(loaded).resolves.toBe(part)
  expect(reload).not.toHaveBeenCalled()
})

test("after an upgrade that took the part away the page begins anew, once", async () => {
  vi.stubGlobal(
    "fetch",
    vi.fn(() => Promise.resolve(new Response())),
  )
  const load = () => Promise.reject(new TypeError("no such part: Page-1f.js"))
  void persistently(load)
  await vi.advanceTimersByTimeAsync(1)
  expect(reload).toHaveBeenCalledTimes(1)
  await expect(persistently(load)).rejects.toThrow("Page-1f.js")
  expect(reload).toHaveBeenCalledTimes(1)
})
