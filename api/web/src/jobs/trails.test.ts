import { QueryClient } from "@tanstack/react-query"
import { expect, test } from "vitest"

import { keys } from "../api/queries"
import type { Progress } from "../api/types"
import { dropTrails, goOn, mainMetric, trailQuery } from "./trails"

function progress(values: Progress["values"]): Progress {
  return { step: 1, values }
}

function trailed(): [QueryClient, () => number[] | undefined] {
  const client = new QueryClient()
  const { queryKey } = trailQuery({ id: 7, progress: progress({ "train/loss": 2 }) })
  client.setQueryData(queryKey, [3, 2])
  return [client, () => client.getQueryData<number[]>(queryKey)]
}

test("the metric of a row is the loss of training, or any loss, or what there is", () => {
  expect(mainMetric(progress({ "val/loss": 1, "train/loss": 2 }))).toBe("train/loss")
  expect(mainMetric(progress({ accuracy: 1, "val/loss": 2 }))).toBe("val/loss")
  expect(mainMetric(progress({ accuracy: 1 }))).toBe("accuracy")
  expect(mainMetric(null)).toBeUndefined()
})

test("a trail goes on by what is told, and keeps to its length", () => {
  const [client, trail] = trailed()
  goOn(client, 7, progress({ "train/loss": 2 }))
  expect(trail()).toEqual([3, 2])
  for (let value = 0; value < 100; value++) goOn(client, 7, progress({ "train/loss": value }))
  expect(trail()).toHaveLength(40)
  expect(trail()?.at(-1)).toBe(99)
})

test("a trail that has missed a part of its way is read anew, not gone on with", () => {
  const [client, trail] = trailed()
  void client.invalidateQueries({ queryKey: keys.live })
  goOn(client, 7, progress({ "train/loss": 1 }))
  expect(trail()).toEqual([3, 2])
  expect(client.getQueryCache().findAll({ stale: true })).toHaveLength(1)
})

test("no trail is kept past the list that goes on with it", () => {
  const [client, trail] = trailed()
  dropTrails(client)
  expect(trail()).toBeUndefined()
})
