import { expect, test } from "vitest"

import { changed } from "./address"

test("parameters are set, taken away and left as they are", () => {
  const before = new URLSearchParams("rank=1&find=loss&code=cli")
  const after = changed(before, { rank: "2", find: "", code: null, attempt: "3" })
  expect(after.toString()).toBe("rank=2&attempt=3")
  expect(before.get("rank")).toBe("1")
})
