import { expect, test } from "vitest"

import { wayOf } from "./placements"

test("a device is shown in the way that it is said", () => {
  expect(wayOf(undefined, null)).toBe("auto")
  expect(wayOf("auto", null)).toBe("auto")
  expect(wayOf("cpu", null)).toBe("cpu")
  expect(wayOf({ count: 2 }, null)).toBe("count")
  expect(wayOf([0, 1], null)).toBe("devices")
})

test("a list of devices stays one while it is typed, until the spec says it otherwise", () => {
  expect(wayOf("cpu", "devices")).toBe("devices")
  expect(wayOf("", "devices")).toBe("devices")
  expect(wayOf({ count: 1 }, "devices")).toBe("count")
})
