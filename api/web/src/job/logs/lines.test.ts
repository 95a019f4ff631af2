import { expect, test, vi } from "vitest"

import { Lines, type Piece } from "./lines"

let ids = 0

function piece(text: string, { rank = 0, attempt = 1, id = ++ids }: Partial<Piece> = {}): Piece {
  return { id, attempt, rank, offset: 0, text, at: "2026-03-01T12:00:00Z" }
}

function texts(lines: Lines): string[] {
  return lines.all.map(({ text }) => text)
}

test("each line of a piece is one, also an empty one, and a piece's last newline begins none", () => {
  const lines = new Lines()
  lines.append([piece("a\n\nb\n"), piece("c\n")])
  expect(texts(lines)).toEqual(["a", "", "b", "c"])
  expect(lines.all.map(({ key }) => key)).toEqual([0, 1, 2, 3])
})

test("a line that comes in several pieces is put together for each rank alone", () => {
  const lines = new Lines()
  expect(lines.append([piece("left ", { rank: 0 }), piece("up ", { rank: 1 })])).toBe(0)
  expect(lines.append([piece("right\nnext\n", { rank: 0 })])).toBe(0)
  lines.append([piece("down\n", { rank: 1 }), piece("\n", { rank: 1 })])
  expect(texts(lines)).toEqual(["left right", "up down", "next", ""])
})

test("a newline that comes alone ends the line that was open", () => {
  const lines = new Lines()
  lines.append([piece("a"), piece("\n"), piece("b\n")])
  expect(texts(lines)).toEqual(["a", "b"])
})

test("a progress bar across pieces is written over", () => {
  const lines = new Lines()
  lines.append([piece("10%\r"), piece("50%"), piece("\r100%\n")])
  expect(texts(lines)).toEqual(["100%"])
})

test("the last line of an attempt, which has no end, is none of the next attempt's", () => {
  const lines = new Lines()
  lines.append([piece("killed", { attempt: 1 }), piece("again\n", { attempt: 2 })])
  expect(texts(lines)).toEqual(["killed", "again"])
})

test("characters of several units come through whole", () => {
  const lines = new Lines()
  lines.append([piece("日本"), piece("語 🚀\n")])
  expect(texts(lines)).toEqual(["日本語 🚀"])
})

test("earlier lines come before the first one, and no key of the others changes", () => {
  const lines = new Lines()
  lines.append([piece("c\n")])
  const [kept] = lines.all
  lines.prepend([piece("a\nb\n")])
  expect(texts(lines)).toEqual(["a", "b", "c"])
  expect(lines.all.map(({ key }) => key)).toEqual([-2, -1, 0])
  expect(lines.all[2]).toBe(kept)
  lines.append([piece("d\n")])
  expect(lines.all.at(-1)?.key).toBe(1)
})

test("the oldest lines are dropped by whole pieces, and an open one that was dropped begins anew", () => {
  const lines = new Lines()
  lines.append([piece("open", { rank: 1 }), piece("a\nb\n"), piece("c\nd\n")])
  expect(lines.drop(5)).toBe(0)
  expect(lines.drop(3)).toBe(3)
  lines.append([piece("rest\n", { rank: 1 })])
  expect(texts(lines)).toEqual(["c", "d", "rest"])
  expect(lines.all.map(({ key }) => key)).toEqual([3, 4, 5])
})

test("pieces that come together have the list copied once, however many lines they bring", () => {
  const lines = new Lines()
  const text = "step 1 loss 0.123\n".repeat(1000)
  const pieces = Array.from({ length: 100 }, () => piece(text))
  const copied = vi.spyOn(Array.prototype, "slice")
  lines.append(pieces)
  const copies = copied.mock.calls.length
  copied.mockRestore()
  expect(copies).toBe(1)
  expect(lines.all.length).toBe(100_000)
})
