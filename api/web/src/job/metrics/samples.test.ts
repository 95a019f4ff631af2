import { expect, it } from "vitest"

import type { DeviceSample } from "../../api/types"
import { MOST_SAMPLES, newestSamples, type ReadSamples } from "./samples"

const MINUTE = 60_000
const START = Date.parse("2026-01-01T00:00:00Z")

function sample(minute: number): DeviceSample {
  const at = new Date(START + minute * MINUTE).toISOString()
  return {
    host: "alpha",
    device: "cuda:0",
    uuid: "0",
    at,
    samples: 6,
    utilisation: minute,
    memory_bytes: 1,
    temperature_c: 1,
    power_w: 1,
  }
}

class Service {
  readonly asked: number[] = []

  constructor(
    public minutes: number,
    readonly perMinute = 1,
  ) {}

  readonly read: ReadSamples = (begin, end = Number.POSITIVE_INFINITY) => {
    const all = Array.from({ length: this.minutes }, (_, minute) => sample(minute))
    const found = all.filter(({ at }) => Date.parse(at) >= begin && Date.parse(at) < end)
    const its = found.flatMap((each) => Array.from({ length: this.perMinute }, () => each))
    this.asked.push(its.length)
    return Promise.resolve(its)
  }
}

function upTo(minutes: number, isOpen = true) {
  return { begin: START, end: START + minutes * MINUTE, isOpen }
}

function minutes(samples: { items: readonly DeviceSample[] }): (number | null | undefined)[] {
  return [samples.items[0]?.utilisation, samples.items.at(-1)?.utilisation]
}

it("reads a short run whole, each reading once", async () => {
  const samples = await newestSamples(new Service(300).read, upTo(300))
  expect(samples.isCut).toBe(false)
  expect(samples.items.map(({ utilisation }) => utilisation)).toEqual(
    Array.from({ length: 300 }, (_, minute) => minute),
  )
})

it("has the end of a run that is too long, and says that its beginning is left out", async () => {
  const samples = await newestSamples(new Service(3_000, 8).read, upTo(3_000))
  expect(samples.isCut).toBe(true)
  expect(samples.items).toHaveLength(MOST_SAMPLES)
  expect(minutes(samples)).toEqual([3_000 - MOST_SAMPLES / 8, 2_999])
})

it("goes on from the last reading, which is read again", async () => {
  const service = new Service(100)
  const kept = await newestSamples(service.read, upTo(100))
  service.minutes = 102
  service.asked.length = 0
  const samples = await newestSamples(service.read, upTo(102), kept)
  expect(service.asked).toEqual([3])
  expect(samples.items).toHaveLength(102)
  expect(minutes(samples)).toEqual([0, 101])
})

it("goes on where the page's clock is behind the service's", async () => {
  const service = new Service(100)
  const kept = await newestSamples(service.read, upTo(20))
  expect(minutes(kept)).toEqual([0, 99])
  service.minutes = 101
  expect(minutes(await newestSamples(service.read, upTo(21), kept))).toEqual([0, 100])
})

it("finds what lies far behind in a few looks", async () => {
  const service = new Service(10)
  const samples = await newestSamples(service.read, upTo(30 * 24 * 60))
  expect(samples.items).toHaveLength(10)
  expect(service.asked.length).toBeLessThan(20)
})

it("has nothing from behind the end of a time that is over", async () => {
  expect(minutes(await newestSamples(new Service(100).read, upTo(50, false)))).toEqual([0, 49])
})
