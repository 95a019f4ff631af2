import { expect, test } from "vitest"

import { Lines, type Piece } from "./lines"
import { Matches, patternOf } from "./matches"

let ids = 0

function piece(text: string): Piece {
  return { id: ++ids, attempt: 1, rank: 0, offset: 0, text, at: "" }
}

function keysOf(lines: Lines, text: string): number[] {
  const matches = new Matches({ text, matchCase: false })
  matches.update(lines.all, 0)
  return [...matches.keys]
}

test("signs with a meaning in patterns are looked for as they stand", () => {
  expect("loss[0] (nan)".match(patternOf({ text: "[0] (", matchCase: true }))).toHaveLength(1)
})

test("case counts only where it is asked for", () => {
  expect("Error error".match(patternOf({ text: "error", matchCase: false }))).toHaveLength(2)
  expect("Error error".match(patternOf({ text: "error", matchCase: true }))).toHaveLength(1)
})

test("colours within a word do not hide it", () => {
  const lines = new Lines()
  lines.append([piece("los\u001b[31ms\u001b[0m 3\n")])
  expect(keysOf(lines, "loss 3")).toEqual([0])
})

test("lines that are put before, behind, grow or go are matched as if all were looked at anew", () => {
  const lines = new Lines()
  const matches = new Matches({ text: "x", matchCase: false })
  matches.update(lines.all, 0)
  let changed = lines.append([piece("x1\na\nb"), piece("")])
  matches.update(lines.all, changed)
  expect(matches.keys).toEqual([0])
  changed = lines.append([piece("x\nx2\n")])
  matches.update(lines.all, changed)
  expect(matches.keys).toEqual([0, 2, 3])
  lines.prepend([piece("x0\nc\n")])
  matches.update(lines.all, Number.POSITIVE_INFINITY)
  expect(matches.keys).toEqual([-2, 0, 2, 3])
  expect(matches.keys).toEqual(keysOf(lines, "x"))
  lines.drop(3)
  matches.update(lines.all, Number.POSITIVE_INFINITY)
  expect(matches.keys).toEqual(keysOf(lines, "x"))
})
