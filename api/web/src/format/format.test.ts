import { expect, test } from "vitest"

import { bytes, figure } from "./numbers"
import { dateTime, duration } from "./times"

test.each([
  [0, "0"],
  [12_345, "12,345"],
  [0.123456, "0.1235"],
  [1e-7, "1E-7"],
  [1_234_567_890, "1.235E9"],
  [null, "–"],
  [Number.NaN, "NaN"],
])("a metric's value %s reads %s", (value, text) => {
  expect(figure(value)).toBe(text)
})

test("a value that is not finite is told by its kind", () => {
  expect(figure(null, "-inf")).toBe("−∞")
})

test.each([
  [0, "0 s"],
  [59.6, "1 min"],
  [65, "1 min 5 s"],
  [3600, "1 h"],
  [90_061, "1 d 1 h"],
  [-5, "0 s"],
])("%s seconds last %s", (seconds, text) => {
  expect(duration(seconds)).toBe(text)
})

test.each([
  [0, "0 B"],
  [1023, "1,023 B"],
  [1536, "1.5 KiB"],
  [1024 ** 3, "1 GiB"],
])("%s bytes read %s", (value, text) => {
  expect(bytes(value)).toBe(text)
})

test("a time is shown in the time zone that was set", () => {
  expect(dateTime("2026-03-01T23:30:00Z", "Asia/Tokyo")).toContain("Mar 2, 2026")
})
