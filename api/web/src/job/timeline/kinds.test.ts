import { expect, it } from "vitest"

import { kindsIn, toggled } from "./kinds"

const none = new URLSearchParams()

it("All kinds but epochs are shown at first", () => {
  expect([...kindsIn(none)]).toEqual(["states", "asked", "log"])
})

it("A box that is ticked stands in the address, and beside what else stands there", () => {
  expect(toggled(new URLSearchParams("code=curl"), "epochs").toString()).toBe(
    "code=curl&kinds=states%2Casked%2Clog%2Cepochs",
  )
  expect(toggled(none, "log").get("kinds")).toBe("states,asked")
})

it("What is shown at first needs no address of its own", () => {
  expect(toggled(toggled(none, "log"), "log").has("kinds")).toBe(false)
})

it("Nothing may be ticked", () => {
  expect([...kindsIn(toggled(new URLSearchParams("kinds=log"), "log"))]).toEqual([""])
})
