import { render } from "@testing-library/react"
import { afterEach, beforeEach, expect, test, vi } from "vitest"

import { useFeed } from "./useFeed"

const asked = vi.hoisted(() =>
  vi.fn<(path: string, init: RequestInit) => Promise<Response>>(() => new Promise(() => undefined)),
)
vi.mock("../api/client", () => ({ askFor: asked }))

let isHidden = false

beforeEach(() => {
  isHidden = false
  vi.spyOn(document, "hidden", "get").mockImplementation(() => isHidden)
})
afterEach(() => {
  vi.restoreAllMocks()
})

function show(hidden: boolean) {
  isHidden = hidden
  document.dispatchEvent(new Event("visibilitychange"))
}

function Page({ jobs }: { jobs?: number[] }) {
  useFeed({ topics: ["jobs"], jobs, onNews: () => undefined, onShow: () => undefined })
  return null
}

test("a tab that is opened in the background has no stream until somebody looks at it", () => {
  isHidden = true
  render(<Page />)
  expect(asked).not.toHaveBeenCalled()
  show(false)
  expect(asked).toHaveBeenCalledTimes(1)
})

test("a tab that was left lets go of its stream after a while, and has it again when it is looked at", () => {
  vi.useFakeTimers()
  render(<Page />)
  const signal = asked.mock.lastCall?.[1].signal
  show(true)
  vi.advanceTimersByTime(60_000)
  expect(signal?.aborted).toBe(true)
  show(false)
  expect(asked).toHaveBeenCalledTimes(2)
  vi.useRealTimers()
})

test("who follows no job has no stream", () => {
  render(<Page jobs={[]} />)
  expect(asked).not.toHaveBeenCalled()
})
