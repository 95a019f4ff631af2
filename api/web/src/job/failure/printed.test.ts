import { expect, it } from "vitest"

import { adviceOn } from "./advice"
import { endOf, plainText, repeats } from "./printed"

it("A rank's colours are left out of plain text", () => {
  expect(plainText("\u001b[31mred\u001b[0m and plain\n")).toBe("red and plain")
})

it("A progress bar that was written over shows how it ended", () => {
  expect(plainText("10%\r50%\r100%\ndone\r\n")).toBe("100%\ndone")
})

it("A log that ends with the traceback repeats it", () => {
  const traceback = 'Traceback (most recent call last):\n  File "train.py", line 3\nValueError: no such class\n'
  expect(repeats("epoch 1\nValueError: no such class", traceback)).toBe(true)
  expect(repeats("epoch 1", traceback)).toBe(false)
  expect(repeats("epoch 1", "")).toBe(false)
})

it("A cause of a later release is advised on too", () => {
  expect(adviceOn("gremlins")).toContain("retry it")
  expect(adviceOn("lost")).toBe(
    "Its host or supervisor went away. Once it is back, retry it: it goes on from its last checkpoint.",
  )
})

it("Of a very long traceback its last lines are shown, and how much is left out", () => {
  const long = `${"  File x\n".repeat(100_000)}ValueError: no such class`
  expect(endOf(long)).toMatch(/^… [\d,. ]+ characters before this are left out …\n {2}File x\n/)
  expect(endOf(long).endsWith("ValueError: no such class")).toBe(true)
  expect(endOf(long).length).toBeLessThan(70_000)
  expect(endOf("x".repeat(100_000)).length).toBeLessThan(70_000)
  expect(endOf("short")).toBe("short")
})
