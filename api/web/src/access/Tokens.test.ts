import { expect, test } from "vitest"

import { stateOf } from "./Tokens"

const NOW = new Date("2026-03-01T12:00:00Z").getTime()

test("a token counts until it expires, and not once it is revoked", () => {
  expect(stateOf({ revoked_at: null, expires_at: null }, NOW)).toBe("counts")
  expect(stateOf({ revoked_at: null, expires_at: "2026-03-01T12:00:01Z" }, NOW)).toBe("counts")
  expect(stateOf({ revoked_at: null, expires_at: "2026-03-01T12:00:00Z" }, NOW)).toBe("expired")
  expect(stateOf({ revoked_at: "2026-02-01T00:00:00Z", expires_at: null }, NOW)).toBe("revoked")
})
