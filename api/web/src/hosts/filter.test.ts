import { expect, test } from "vitest"

import { aDevice, aHost } from "./examples"
import { filterHosts, readFilter } from "./filter"

const alpha = aHost({ name: "alpha", devices: [aDevice({ model: "NVIDIA H200" })] })
const beta = aHost({
  name: "beta",
  drained_at: "2026-03-01T12:00:00Z",
  closed: "drained",
  devices: [aDevice({ model: "NVIDIA A100", quarantined_at: "2026-03-01T12:00:00Z" })],
})
const hosts = [alpha, beta]

function filter(query: string) {
  return filterHosts(hosts, readFilter(new URLSearchParams(query)))
}

test("without a filter all hosts are shown", () => {
  expect(filter("")).toEqual(hosts)
})

test("text finds hosts by name and by the model of a device, upper or lower case", () => {
  expect(filter("q=ALPH")).toEqual([alpha])
  expect(filter("q=a100")).toEqual([beta])
  expect(filter("q=tpu")).toEqual([])
})

test("a state leaves the hosts that are in it, and quarantine those with such a device", () => {
  expect(filter("state=open")).toEqual([alpha])
  expect(filter("state=drained")).toEqual([beta])
  expect(filter("state=quarantine")).toEqual([beta])
})

test("a state that there is not filters nothing", () => {
  expect(filter("state=toString")).toEqual(hosts)
})
