import { afterEach, beforeEach, describe, expect, test, vi } from "vitest"

import type { JobEvent } from "../api/types"
import type { JobNews } from "../live/events"
import { GatheredNews } from "./jobNews"

const takers = {
  isReading: vi.fn(() => false),
  onProgress: vi.fn(),
  onChanged: vi.fn((): Promise<readonly number[]> => Promise.resolve([])),
  onCome: vi.fn(() => Promise.resolve(true)),
  onMuch: vi.fn(() => Promise.resolve()),
}

function happened(id: number, kind: string): JobNews {
  return { job_id: id, event: { kind } as JobEvent, progress: null }
}

function progressed(id: number, step: number): JobNews {
  return { job_id: id, event: null, progress: { step, values: {} } }
}

beforeEach(() => {
  vi.useFakeTimers()
  takers.isReading.mockReturnValue(false)
})

afterEach(() => {
  vi.useRealTimers()
})

describe("gathered news", () => {
  test("a thousand steps within a moment are one change of the list, with the last of each job", async () => {
    const news = new GatheredNews(takers)
    for (let step = 1; step <= 1000; step++) news.take(progressed(step % 2, step))
    await vi.advanceTimersByTimeAsync(400)
    expect(takers.onProgress).toHaveBeenCalledOnce()
    expect(takers.onProgress).toHaveBeenCalledWith(
      new Map([
        [1, { step: 999, values: {} }],
        [0, { step: 1000, values: {} }],
      ]),
    )
  })

  test("a job whose state has changed twice is read once; what changes no row is passed over", async () => {
    const news = new GatheredNews(takers)
    news.take(happened(7, "state"))
    news.take(happened(7, "state"))
    news.take(happened(8, "epoch"))
    await vi.advanceTimersByTimeAsync(400)
    expect(takers.onChanged).toHaveBeenCalledExactlyOnceWith([7])
  })

  test("more jobs at once than can be asked for one by one are read as lists", async () => {
    const news = new GatheredNews(takers)
    for (let id = 1; id <= 100; id++) news.take(happened(id, "state"))
    await vi.advanceTimersByTimeAsync(400)
    expect(takers.onMuch).toHaveBeenCalledOnce()
    expect(takers.onChanged).not.toHaveBeenCalled()
  })

  test("jobs that were submitted are told once", async () => {
    const news = new GatheredNews(takers)
    news.take(happened(1, "submitted"))
    news.take(happened(2, "submitted"))
    await vi.advanceTimersByTimeAsync(400)
    expect(takers.onCome).toHaveBeenCalledOnce()
  })

  test("while lists are read, or the last news are taken in, all waits and nothing is lost", async () => {
    const news = new GatheredNews(takers)
    takers.isReading.mockReturnValue(true)
    news.take(progressed(7, 1))
    await vi.advanceTimersByTimeAsync(5_000)
    expect(takers.onProgress).not.toHaveBeenCalled()
    takers.isReading.mockReturnValue(false)
    let finish: () => void = () => undefined
    takers.onChanged.mockReturnValueOnce(new Promise((resolve) => (finish = () => resolve([]))))
    news.take(happened(7, "state"))
    await vi.advanceTimersByTimeAsync(400)
    expect(takers.onProgress).toHaveBeenCalledOnce()
    news.take(happened(8, "state"))
    await vi.advanceTimersByTimeAsync(5_000)
    expect(takers.onChanged).toHaveBeenCalledOnce()
    finish()
    await vi.advanceTimersByTimeAsync(400)
    expect(takers.onChanged).toHaveBeenLastCalledWith([8])
  })

  test("what cannot be read for now is asked for again, and until it is read", async () => {
    const news = new GatheredNews(takers)
    takers.onChanged.mockClear()
    takers.onCome.mockClear()
    takers.onChanged.mockResolvedValueOnce([7]).mockResolvedValueOnce([7])
    takers.onCome.mockResolvedValueOnce(false)
    news.take(happened(7, "state"))
    news.take(happened(8, "state"))
    news.take(happened(9, "submitted"))
    await vi.advanceTimersByTimeAsync(20_000)
    expect(takers.onChanged.mock.calls).toEqual([[[7, 8]], [[7]], [[7]]])
    expect(takers.onCome).toHaveBeenCalledTimes(2)
  })

  test("a list that is left asks for nothing more", async () => {
    const news = new GatheredNews(takers)
    takers.onChanged.mockClear()
    takers.onChanged.mockImplementationOnce(() => {
      news.stop()
      return Promise.resolve([7])
    })
    news.take(happened(7, "state"))
    await vi.advanceTimersByTimeAsync(20_000)
    expect(takers.onChanged).toHaveBeenCalledOnce()
  })
})
