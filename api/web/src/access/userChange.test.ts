import { expect, test } from "vitest"

import { questionBefore } from "./userChange"

const erin = { name: "erin", role: "submitter" } as const

test("a lower role and disabling are asked about, and what gives rights is not", () => {
  expect(questionBefore(erin, { role: "viewer" }, "root")?.title).toBe("Make erin a viewer?")
  expect(questionBefore(erin, { disabled: true }, "root")?.verb).toBe("Disable")
  expect(questionBefore(erin, { role: "admin" }, "root")).toBeUndefined()
  expect(questionBefore(erin, { disabled: false }, "root")).toBeUndefined()
})

test("who gives up their own role is told that they cannot take it back", () => {
  expect(questionBefore({ name: "root", role: "admin" }, { role: "viewer" }, "root")?.text).toContain("you cannot")
  expect(questionBefore(erin, { role: "viewer" }, "root")?.text).not.toContain("you cannot")
})
