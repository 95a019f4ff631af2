import { expect, test } from "vitest"

import { Before } from "./before"
import type { Piece } from "./lines"

/** An API that has pieces with these ids; it counts how often it is asked. */
function stored(ids: readonly number[]) {
  const asked = { times: 0 }
  const read = (after: number, limit: number): Promise<Piece[]> => {
    asked.times += 1
    const found = ids.filter((id) => id > after).slice(0, limit)
    return Promise.resolve(found.map((id) => ({ id, attempt: 1, rank: 0, offset: 0, text: "x\n", at: "" })))
  }
  return { read, asked }
}

async function all(ids: readonly number[]) {
  const { read, asked } = stored(ids)
  const before = new Before(read, ids[0] ?? 0)
  let bound = (ids.at(-1) ?? 0) + 1
  const found: number[] = []
  while (before.has(bound)) {
    const pieces = await before.read(bound)
    found.unshift(...pieces.map(({ id }) => id))
    bound = pieces[0]?.id ?? 0
  }
  return { found, times: asked.times }
}

const MANY = Array.from({ length: 5_000 }, (_, index) => index)

test("pieces in a row are read back with none missing and none twice", async () => {
  const ids = MANY.map((index) => index + 1)
  const { found, times } = await all(ids)
  expect(found).toEqual(ids)
  expect(times).toBeLessThan(30)
})

test("pieces among many of other jobs are read back in few requests", async () => {
  const ids = MANY.map((index) => 1_000_000 + index * 97)
  const { found, times } = await all(ids)
  expect(found).toEqual(ids)
  expect(times).toBeLessThan(40)
})

test("a job that was alone, rested for millions of ids, and was alone again is read back whole", async () => {
  const ids = [...MANY.map((index) => index + 7), ...MANY.map((index) => 50_000_000 + index)]
  const { found, times } = await all(ids)
  expect(found).toEqual(ids)
  expect(times).toBeLessThan(80)
})

test("before the first piece there is nothing, and nothing is asked for", async () => {
  const { read, asked } = stored([5, 6])
  const before = new Before(read, 5)
  expect(before.has(5)).toBe(false)
  expect(await before.read(5)).toEqual([])
  expect(asked.times).toBe(0)
})
