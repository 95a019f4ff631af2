import { expect, test } from "vitest"

import { aDevice, aHost } from "../examples"
import { lanesOf } from "./lanes"

const held = (name: string, job_id: number) => aDevice({ name, held_by: { job_id, attempt: 1 } })

test("the devices that a job holds on a host are one lane, in the order of the devices", () => {
  const host = aHost({
    devices: [held("cuda:0", 8), held("cuda:1", 7), held("cuda:2", 8), aDevice({ name: "cuda:3" })],
  })
  expect(lanesOf([host])[0]?.lanes).toEqual([
    { jobId: 8, devices: "cuda:0, cuda:2" },
    { jobId: 7, devices: "cuda:1" },
  ])
})

test("a job on two hosts has a lane on each, and a host on which nothing runs has none", () => {
  const hosts = [
    aHost({ name: "alpha", devices: [held("cuda:0", 7)] }),
    aHost({ name: "beta", devices: [held("cuda:0", 7)] }),
    aHost({ name: "gamma", devices: [aDevice({})] }),
  ]
  expect(lanesOf(hosts).map(({ host, lanes }) => [host.name, lanes.length])).toEqual([
    ["alpha", 1],
    ["beta", 1],
  ])
})
