import { beforeEach, expect, test, vi } from "vitest"

import { token } from "./token"

beforeEach(() => {
  token.signOut()
})

test("a token is the tab's alone, unless it is to be kept", () => {
  token.signIn("rz_a", { keep: false })
  expect([sessionStorage.length, localStorage.length]).toEqual([1, 0])
  token.signIn("rz_b", { keep: true })
  expect([sessionStorage.length, localStorage.length]).toEqual([0, 1])
  expect(token.value).toBe("rz_b")
})

test("a token that the service refuses is forgotten, and said to be", () => {
  token.signIn("rz_a", { keep: true })
  token.refused("rz_a")
  expect([token.value, token.wasRefused, localStorage.length]).toEqual([null, true, 0])
})

test("a late refusal of an earlier token does not end the new one", () => {
  token.signIn("rz_a", { keep: false })
  token.signIn("rz_b", { keep: false })
  token.refused("rz_a")
  expect(token.value).toBe("rz_b")
})

test("a refusal leaves what another tab has kept", () => {
  token.signIn("rz_a", { keep: false })
  localStorage.setItem("rankzero.token", "rz_other")
  token.refused("rz_a")
  expect([sessionStorage.length, localStorage.getItem("rankzero.token")]).toEqual([0, "rz_other"])
})

test("signing out in one tab ends what another had from the browser", () => {
  token.signIn("rz_a", { keep: true })
  const told = vi.fn()
  const forget = token.subscribe(told)
  window.dispatchEvent(
    new StorageEvent("storage", { key: "rankzero.token", newValue: null, storageArea: localStorage }),
  )
  expect([token.value, told.mock.calls.length]).toEqual([null, 1])
  forget()
})
