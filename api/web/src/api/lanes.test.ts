import { expect, test } from "vitest"

import { Lanes } from "./lanes"

test("a request that was given up before its turn is never made", async () => {
  const lanes = new Lanes(1)
  const given = new AbortController()
  const made: string[] = []
  const first = lanes.run(async () => {
    await Promise.resolve()
    made.push("first")
  })
  const second = lanes.run(() => Promise.resolve(made.push("second")), given.signal)
  const third = lanes.run(() => Promise.resolve(made.push("third")))
  given.abort(new Error("scrolled past"))
  await expect(second).rejects.toThrow("scrolled past")
  await Promise.all([first, third])
  expect(made).toEqual(["first", "third"])
})
