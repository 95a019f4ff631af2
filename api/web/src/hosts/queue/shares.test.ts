import { expect, test } from "vitest"

import { rowsOf } from "./shares"

test("each user has their own quota or that of every other user, and who holds most comes first", () => {
  const rows = rowsOf({
    items: [
      { kind: "user", subject: "*", max_devices: 8, share: 1, use: null },
      { kind: "user", subject: "ada", max_devices: null, share: 2, use: { held_devices: 1, recent_device_s: 60 } },
      { kind: "label", subject: "team=vision", max_devices: 4, share: 1, use: { held_devices: 3, recent_device_s: 5 } },
    ],
    users: [
      { user: "ada", held_devices: 1, recent_device_s: 60 },
      { user: null, held_devices: 2, recent_device_s: 0 },
    ],
  })
  expect(rows.map(({ name, holds, most, share }) => [name, holds, most, share])).toEqual([
    ["label team=vision", 3, 4, 1],
    ["each other user", null, 8, 1],
    ["jobs without a user", 2, 8, 1],
    ["ada", 1, null, 2],
  ])
})

test("who has a quota and has used nothing is listed, and without quotas there is no limit", () => {
  const quota = { kind: "user" as const, subject: "dora", max_devices: 0, share: 1, use: null }
  expect(rowsOf({ items: [quota], users: [] })).toEqual([{ name: "dora", holds: 0, most: 0, share: 1, used_s: 0 }])
  expect(rowsOf({ items: [], users: [{ user: "bob", held_devices: 0, recent_device_s: 9 }] })).toEqual([
    { name: "bob", holds: 0, most: null, share: 1, used_s: 9 },
  ])
})
