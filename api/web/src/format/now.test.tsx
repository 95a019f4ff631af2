import { act, render } from "@testing-library/react"
import { afterEach, expect, test, vi } from "vitest"

import { useNow } from "./now"

afterEach(() => {
  vi.useRealTimers()
})

function Clock({ told }: { told: number[] }) {
  told.push(useNow())
  return null
}

test("the time does not jump back after a while in which nobody looked", () => {
  vi.useFakeTimers({ now: 1_000_000 })
  render(<Clock told={[]} />).unmount()
  act(() => {
    vi.advanceTimersByTime(600_000)
  })
  const told: number[] = []
  render(<Clock told={told} />)
  act(() => {
    vi.advanceTimersByTime(3_000)
  })
  expect(told).toEqual(told.toSorted((one, other) => one - other))
  expect(told.at(-1)).toBe(1_603_000)
})
