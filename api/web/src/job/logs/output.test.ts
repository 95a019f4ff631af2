import { afterEach, beforeEach, expect, test, vi } from "vitest"

import type { Piece } from "./lines"
import { LOOKED_AT } from "./matches"
import { MOST_LINES, Output, type Source } from "./output"

function piece(id: number, text = `line ${id}\n`): Piece {
  return { id, attempt: 1, rank: 0, offset: 0, text, at: "2026-03-01T12:00:00Z" }
}

class Stored implements Source {
  isAway = false

  constructor(readonly pieces: Piece[]) {}

  readonly read = (after: number, limit: number) =>
    this.isAway
      ? Promise.reject(new Error("away"))
      : Promise.resolve(this.pieces.filter(({ id }) => id > after).slice(0, limit))

  readonly newest = () => Promise.resolve(this.pieces.at(-1)?.id ?? 0)
}

function upTo(many: number): Piece[] {
  return Array.from({ length: many }, (_, index) => piece(index + 1))
}

function ends(output: Output): (string | undefined)[] {
  const { lines } = output.get()
  return [lines[0]?.text, lines.at(-1)?.text]
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

test("it begins with the end, and goes back to the beginning block by block", async () => {
  const output = new Output(new Stored(upTo(5_000)))
  await output.show()
  expect(output.get().lines.at(-1)?.text).toBe("line 5000")
  expect(output.get().lines.length).toBeLessThan(3_000)
  while (output.get().hasEarlier) await output.earlier()
  expect(ends(output)).toEqual(["line 1", "line 5000"])
  expect(output.get().lines).toHaveLength(5_000)
})

test("pieces that come while the end is read are put behind it, each once, also those that both bring", async () => {
  const stored = new Stored(upTo(3))
  const output = new Output(stored)
  const shown = output.show()
  output.take([piece(3), piece(4)])
  await shown
  expect(output.get().lines.map(({ text }) => text)).toEqual(["line 1", "line 2", "line 3", "line 4"])
})

test("what comes is shown four times a second at most", async () => {
  const output = new Output(new Stored(upTo(1)))
  await output.show()
  const told = vi.fn()
  output.subscribe(told)
  for (let id = 2; id <= 101; id += 1) output.take([piece(id)])
  expect(told).not.toHaveBeenCalled()
  vi.advanceTimersByTime(250)
  expect(told).toHaveBeenCalledTimes(1)
  expect(output.get().lines).toHaveLength(101)
})

test("a job that has printed nothing yet is followed from its first line on", async () => {
  const output = new Output(new Stored([]))
  await output.show()
  expect(output.get().isLoading).toBe(false)
  output.take([piece(7)])
  vi.advanceTimersByTime(250)
  expect(ends(output)).toEqual(["line 7", "line 7"])
  expect(output.get().hasEarlier).toBe(false)
})

test("a stream that comes back brings what was missed", async () => {
  const stored = new Stored(upTo(3))
  const output = new Output(stored)
  await output.show()
  stored.pieces.push(piece(4), piece(5))
  await output.show()
  output.take([piece(5), piece(6)])
  vi.advanceTimersByTime(250)
  expect(output.get().lines.map(({ text }) => text)).toEqual([1, 2, 3, 4, 5, 6].map((id) => `line ${id}`))
})

test("a service that was away is said, and nothing of what came meanwhile is lost", async () => {
  const stored = new Stored(upTo(3))
  stored.isAway = true
  const output = new Output(stored)
  await output.show()
  expect(output.get().error?.message).toBe("away")
  output.take([piece(4)])
  vi.advanceTimersByTime(250)
  stored.isAway = false
  await output.show()
  expect(output.get().error).toBeNull()
  expect(output.get().lines.map(({ text }) => text)).toEqual([1, 2, 3, 4].map((id) => `line ${id}`))
})

test("of more lines than are kept the oldest are dropped, and that is said", async () => {
  const output = new Output(new Stored(upTo(1)))
  await output.show()
  const block = "x\n".repeat(1_000)
  const more = Array.from({ length: MOST_LINES / 1_000 }, (_, index) => piece(index + 2, block))
  output.take(more)
  vi.advanceTimersByTime(250)
  const { lines, dropped, hasEarlier, isFull } = output.get()
  expect(lines.length).toBeLessThanOrEqual(MOST_LINES)
  expect(lines.length + dropped).toBe(MOST_LINES + 1)
  expect([hasEarlier, isFull]).toEqual([true, true])
})

test("a line that was found is reached by loading all up to it", async () => {
  const output = new Output(new Stored(upTo(5_000)))
  await output.show()
  const key = await output.reach(17, "line 17\n")
  const { lines } = output.get()
  expect(lines[(key ?? 0) - (lines[0]?.key ?? 0)]?.text).toBe("line 17")
  expect(lines.at(-1)?.text).toBe("line 5000")
})

test("what is looked for is found in the lines that are there and in those that come", async () => {
  const output = new Output(new Stored(upTo(3)))
  await output.show()
  output.find({ text: "LINE 4", matchCase: false })
  expect(output.get().matches).toEqual([])
  output.take([piece(4)])
  vi.advanceTimersByTime(250)
  expect(output.get().matches).toEqual([3])
})

test("a line that was found is waited for while the end is read", async () => {
  const output = new Output(new Stored(upTo(5_000)))
  const shown = output.show()
  const key = await output.reach(17, "line 17\n")
  await shown
  const { lines } = output.get()
  expect(lines[(key ?? 0) - (lines[0]?.key ?? 0)]?.text).toBe("line 17")
})

test("what comes in large amounts is taken in part by part, and none of it is lost", async () => {
  const output = new Output(new Stored(upTo(1)))
  await output.show()
  const told = vi.fn()
  output.subscribe(told)
  output.take(Array.from({ length: 20 }, (_, index) => piece(index + 2, "x".repeat(99_999) + "\n")))
  vi.advanceTimersByTime(1_000)
  expect(told).toHaveBeenCalledTimes(4)
  expect(output.get().lines).toHaveLength(21)
})

test("many lines are searched from their end on, part by part", async () => {
  const block = "needle\n".repeat(LOOKED_AT)
  const output = new Output(new Stored([]))
  await output.show()
  output.take([piece(1, block), piece(2, block)])
  vi.advanceTimersByTime(250)
  output.find({ text: "needle", matchCase: true })
  expect(output.get().matches).toHaveLength(LOOKED_AT)
  expect(output.get().matches[0]).toBe(LOOKED_AT)
  vi.advanceTimersByTime(10)
  expect(output.get().matches).toHaveLength(2 * LOOKED_AT)
})
