import { expect, test } from "vitest"

import { read, write } from "./texts"

test("a number is read as the service reads it, and anything else is a problem", () => {
  expect(read("number", " 1e-3 ")).toEqual({ value: 0.001, problem: null })
  expect(read("number", ".5").value).toBe(0.5)
  expect(read("number", "-1").value).toBe(-1)
  for (const text of ["0,1", "0x10", "1e999", "many"]) {
    expect(read("number", text)).toEqual({ value: text, problem: "This is not a number" })
  }
})

test("nothing typed is no value, and so the default", () => {
  for (const kind of ["number", "text", "lines", "pairs", "json"] as const) {
    expect(read(kind, "  ")).toEqual({ value: undefined, problem: null })
  }
})

test("lines and pairs are written as they are read", () => {
  expect(read("lines", "--epochs\n\n3\n").value).toEqual(["--epochs", "3"])
  expect(write("lines", ["--epochs", "3"])).toBe("--epochs\n3")
  expect(read("pairs", "team = vision\nurl=a=b").value).toEqual({ team: "vision", url: "a=b" })
  expect(write("pairs", { team: "vision", url: "a=b" })).toBe("team=vision\nurl=a=b")
})

test("a pair without a name or a sign between, or one that is there twice, is a problem that names it", () => {
  expect(read("pairs", "team=a\nowner").problem).toContain('"owner"')
  expect(read("pairs", "=a").problem).toContain('"=a"')
  expect(read("pairs", "team=a\nteam=b").problem).toContain("twice")
})

test("what takes anything takes plain text, but nothing that begins as JSON and is none", () => {
  expect(read("json", "0,1")).toEqual({ value: "0,1", problem: null })
  expect(read("json", "[0, 1]").value).toEqual([0, 1])
  expect(read("json", "[0, 1").problem).toContain("not JSON")
})
