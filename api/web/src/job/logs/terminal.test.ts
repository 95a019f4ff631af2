import { expect, test } from "vitest"

import { plain, settled, spans, styleBehind } from "./terminal"

const ESC = "\u001b"

test("a progress bar is shown as it was written last", () => {
  expect(settled("10%|#   |\r50%|##  |\r100%|####|\r")).toBe("100%|####|")
})

test("what a shorter text has not written over is still there", () => {
  expect(settled("epoch 10\repoch 9")).toBe("epoch 90")
})

test("a line that ends as on Windows is no line that was written over", () => {
  expect(settled("done\r")).toBe("done")
})

test("backspaces have the next characters written over the last ones", () => {
  expect(settled("1/10\b\b\b\b2/10")).toBe("2/10")
  expect(settled("\b\bab\b")).toBe("ab")
})

test("colours and decorations are told apart, and the text is whole", () => {
  const found = spans(`plain ${ESC}[31mred ${ESC}[1mbold${ESC}[0m end`, "")
  expect(found.map(({ text }) => text)).toEqual(["plain ", "red ", "bold", " end"])
  expect(found.map(({ colour }) => colour)).toEqual([null, "187, 0, 0", "187, 0, 0", null])
  expect(found[2]?.decorations).toEqual(["bold"])
})

test("colours of 256 and of 16 million are those that were asked for", () => {
  expect(spans(`${ESC}[38;5;196mx`, "")[0]?.colour).toBe("255, 0, 0")
  expect(spans(`${ESC}[48;2;1;2;3mx`, "")[0]?.background).toBe("1, 2, 3")
})

test("titles, links, movements and unknown sequences leave nothing behind", () => {
  const text = `${ESC}]0;title\u0007a${ESC}]8;;http://x${ESC}\\link${ESC}]8;;${ESC}\\${ESC}[2K${ESC}[?25lb${ESC}(Bc${ESC}[38:2::1:2:3md`
  expect(plain(text)).toBe("alinkbcd")
  expect(
    spans(text, "")
      .map((span) => span.text)
      .join(""),
  ).toBe("alinkbcd")
})

test("an escape at the end of a line is no error", () => {
  expect(plain(`a${ESC}`)).toBe("a")
  expect(plain(`a${ESC}[`)).toBe("a")
  expect(plain(`a${ESC}[31`)).toBe("a")
})

test("control characters are shown by their pictures, and tabs are kept", () => {
  expect(plain("a\u0000b\tc\u0007\u007f\u0085")).toBe("a\u2400b\tc\u2407\u2421\ufffd")
})

test("a style goes on in the next line until it is taken back", () => {
  const style = styleBehind("", `${ESC}[31mfirst`)
  expect(spans("second", style)[0]?.colour).toBe("187, 0, 0")
  expect(styleBehind(style, `rest${ESC}[0m`)).toBe("")
  expect(styleBehind(style, `${ESC}[mrest`)).toBe("")
  expect(styleBehind(style, `${ESC}[0;32mrest`)).toBe(`${ESC}[0;32m`)
})

test("a style of a thousand sequences does not grow without end", () => {
  expect(styleBehind("", `${ESC}[1m`.repeat(1000)).length).toBeLessThan(210)
})
