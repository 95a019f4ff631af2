import { expect, test } from "vitest"

import { namesInShort } from "./deviceNames"
import { aDevice } from "./examples"
import { tilesOf } from "./tiles"

test("devices are in the order of their numbers, each kind by itself", () => {
  const names = ["cuda:10", "cuda:2", "cpu:1", "cpu:0"]
  const { devices } = tilesOf(names.map((name) => aDevice({ name, kind: name.startsWith("cpu") ? "cpu" : "cuda" })))
  expect(devices.map(({ name }) => name)).toEqual(["cuda:2", "cuda:10", "cpu:0", "cpu:1"])
})

test("many free CPU slots are one line, and a held one keeps its tile", () => {
  const slots = Array.from({ length: 64 }, (_, index) =>
    aDevice({ name: `cpu:${index}`, kind: "cpu", held_by: index === 2 ? { job_id: 7, attempt: 1 } : null }),
  )
  const { devices, freeSlots } = tilesOf([aDevice({}), ...slots])
  expect(devices.map(({ name }) => name)).toEqual(["cuda:0", "cpu:2"])
  expect(freeSlots).toBe("63 CPU slots free: cpu:0–1, cpu:3–63")
})

test("names with no number stand as they are", () => {
  expect(namesInShort(["mps"])).toBe("mps")
  expect(namesInShort(["cuda:0", "cuda:1", "cuda:2", "cuda:6", "cpu:7"])).toBe("cuda:0–2, cuda:6, cpu:7")
})
