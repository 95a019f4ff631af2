import { expect, it } from "vitest"

import { columnsOf, extentOf, type Line } from "./lines"

function line(id: string, at: number[], values: (number | null)[], kinds?: Line["kinds"]): Line {
  return { id, label: id, inkIndex: 0, at, values, kinds }
}

const plain = { smoothing: 0, isLog: false }

it("puts lines over one column of places, with nothing where one of them has no point", () => {
  const { data } = columnsOf([line("a", [1, 2, 3], [10, 20, 30]), line("b", [2, 4], [5, 6])], plain)
  expect(data[0]).toEqual([1, 2, 3, 4])
  expect(data[1]).toEqual([10, 20, 30, undefined])
  expect(data[2]).toEqual([undefined, 5, undefined, 6])
})

it("keeps a gap apart from a place that another line has alone", () => {
  const { data, gaps } = columnsOf([line("a", [1, 3], [1, null], [null, "nan"]), line("b", [1, 3], [1, 1])], plain)
  expect(data[1]).toEqual([1, null])
  expect(gaps).toEqual([{ x: 3, kind: "nan" }])
})

it("counts what a logarithmic scale cannot show, and leaves a gap there", () => {
  const { data, hidden } = columnsOf([line("a", [1, 2, 3], [1, 0, -5])], { smoothing: 0, isLog: true })
  expect(data[1]).toEqual([1, null, null])
  expect(hidden).toBe(2)
})

it("has the smoothed values behind the measured ones of each line", () => {
  const { data } = columnsOf([line("a", [1, 2], [1, 3]), line("b", [1, 2], [7, 7])], { smoothing: 0.5, isLog: false })
  expect(data).toHaveLength(5)
  expect(data[3]).toEqual([7, 7])
  expect(data[4]).toEqual([7, 7])
})

it("orders by time what is ordered by step", () => {
  const { data } = columnsOf([line("a", [30, 10, 20], [3, 1, 2])], plain)
  expect(data[0]).toEqual([10, 20, 30])
  expect(data[1]).toEqual([1, 2, 3])
})

it("finds what all lines lie in", () => {
  expect(extentOf([line("a", [5, 9], [1, 1]), line("b", [2], [1])])).toEqual([2, 9])
  expect(extentOf([])).toBeNull()
})
