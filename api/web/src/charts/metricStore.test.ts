import { afterEach, beforeEach, expect, it, vi } from "vitest"

import type { Metric } from "../api/types"
import { MetricStore, POINTS, pointsOf } from "./metricStore"

function metric(step: number, value = step, attempt = 1): Metric {
  return { name: "loss", step, epoch: 1, attempt, at: "2026-01-01T00:00:00Z", value, kind: null }
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

it("tells of many news at once", async () => {
  const store = new MetricStore(() => Promise.resolve([metric(1)]))
  await store.load(7)
  const told = vi.fn()
  store.subscribe(told)
  for (let step = 2; step < 100; step += 1) store.add(7, [metric(step)])
  expect(told).not.toHaveBeenCalled()
  vi.runAllTimers()
  expect(told).toHaveBeenCalledTimes(1)
  expect(store.get().jobs.get(7)?.get("loss")?.steps).toHaveLength(99)
})

it("loses no news that come while the answer is on its way", async () => {
  let answer: (items: Metric[]) => void = () => undefined
  const store = new MetricStore(() => new Promise((resolve) => (answer = resolve)))
  const loaded = store.load(7)
  store.add(7, [metric(3)])
  vi.runAllTimers()
  expect(store.get().jobs.has(7)).toBe(false)
  answer([metric(1), metric(2)])
  await loaded
  expect(store.get().jobs.get(7)?.get("loss")?.steps).toEqual([1, 2, 3])
})

it("passes over the answer to an earlier reading", async () => {
  const answers: ((items: Metric[]) => void)[] = []
  const store = new MetricStore(() => new Promise((resolve) => answers.push(resolve)))
  const first = store.load(7)
  const second = store.load(7)
  answers[1]?.([metric(2)])
  answers[0]?.([metric(1)])
  await Promise.all([first, second])
  expect(store.get().jobs.get(7)?.get("loss")?.steps).toEqual([2])
})

it("keeps no more of a growing series than twice what it asks for, and its extremes", async () => {
  const store = new MetricStore(() => Promise.resolve([metric(0)]))
  await store.load(7)
  for (let step = 1; step < 20 * POINTS; step += 1) {
    store.add(7, [metric(step, step === 500 ? -1 : step)])
    if (step % 100 === 0) vi.runAllTimers()
  }
  vi.runAllTimers()
  const curve = store.get().jobs.get(7)?.get("loss")
  expect(curve?.steps.length).toBeLessThanOrEqual(2 * POINTS)
  expect(curve?.values).toContain(-1)
  expect(curve?.steps.at(-1)).toBe(20 * POINTS - 1)
})

it("says what went wrong, and forgets it when it goes well", async () => {
  let fails = true
  const store = new MetricStore(() => (fails ? Promise.reject(new Error("away")) : Promise.resolve([])))
  await store.load(7)
  expect(store.get().errors.get(7)?.message).toBe("away")
  fails = false
  await store.load(7)
  expect(store.get().errors.size).toBe(0)
  expect(store.get().jobs.get(7)?.size).toBe(0)
})

it("reads a job once more when it ends, and once more when it ends again", async () => {
  const read = vi.fn(() => Promise.resolve([metric(1)]))
  const store = new MetricStore(read)
  await store.load(7)
  store.loadEnded([7])
  store.loadEnded([7, 8])
  expect(read).toHaveBeenCalledTimes(3)
  store.loadEnded([8])
  store.loadEnded([7, 8])
  expect(read).toHaveBeenCalledTimes(4)
})

it("asks for no more values than an answer has, of many metrics for fewer of each", () => {
  expect([0, 1, 60].map(pointsOf)).toEqual([POINTS, POINTS, POINTS])
  for (const metrics of [67, 500, 40_000]) expect(pointsOf(metrics) * metrics).toBeLessThanOrEqual(100_000)
  expect(pointsOf(500)).toBeGreaterThan(150)
})
