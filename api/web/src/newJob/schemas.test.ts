import { expect, test } from "vitest"

import { fieldsOf, flattened, sparse, type Schema } from "./schemas"

const ROOT = {
  $defs: {
    Size: { type: "object", properties: { train: { type: "integer", default: 2000 } } },
    Mode: { type: "string", enum: ["weights", "resume"] },
  },
}

function kindsOf(properties: Record<string, Schema>) {
  return fieldsOf({ properties }, ROOT).map(({ kind }) => kind)
}

test("each kind of schema has its kind of input, also where it may be null", () => {
  expect(
    kindsOf({
      optimizer: { type: "string", enum: ["sgd", "adamw"] },
      amp: { anyOf: [{ type: "string", enum: ["fp16"] }, { type: "null" }] },
      mode: { $ref: "#/$defs/Mode" },
      augment: { type: "array", items: { type: "string", enum: ["flip"] } },
      compile: { type: "boolean" },
      batch: { type: "integer" },
      lr: { type: "number" },
      weights: { anyOf: [{ type: "string" }, { type: "null" }] },
      freeze: { type: "array", items: { type: "string" } },
      labels: { type: "object", patternProperties: { ".*": { type: "string" } } },
      env: { type: "object", additionalProperties: { type: "string" } },
      size: { $ref: "#/$defs/Size" },
      anything: {},
      numbers: { type: "array", items: { type: "number" } },
      options: { type: "object", patternProperties: { ".*": {} } },
    }),
  ).toEqual([
    ...["choice", "choice", "choice", "several", "flag", "number", "number", "text", "lines"],
    ...["pairs", "pairs", "group", "json", "json", "json"],
  ])
})

test("fields within a group have the path that the service names them by", () => {
  const fields = fieldsOf({ properties: { size: { $ref: "#/$defs/Size" } } }, ROOT, ["train", "options"])
  expect(flattened(fields).map(({ id }) => id)).toEqual(["train.options.size", "train.options.size.train"])
})

test("what may be a text or an object has the object's fields too", () => {
  const device: Schema = { anyOf: [{ type: "string" }, { type: "object", properties: { count: { type: "integer" } } }] }
  const [field] = fieldsOf({ properties: { device } }, ROOT)
  expect(field?.kind).toBe("json")
  expect(field?.fields.map(({ id }) => id)).toEqual(["device.count"])
})

test("a reference that leads nowhere takes anything", () => {
  expect(kindsOf({ odd: { $ref: "#/$defs/Gone" } })).toEqual(["json"])
})

test("a spec is left with what differs from its defaults, and with what no field is known for", () => {
  const fields = fieldsOf(
    {
      properties: {
        priority: { type: "integer", default: 50 },
        host: { anyOf: [{ type: "string" }, { type: "null" }] },
        size: { $ref: "#/$defs/Size" },
      },
    },
    ROOT,
  )
  expect(sparse({ priority: 50, host: null, size: { train: 7, val: 8 }, later: 1 }, fields)).toEqual({
    size: { train: 7, val: 8 },
    later: 1,
  })
  expect(sparse({ priority: 60, size: { train: 2000 } }, fields)).toEqual({ priority: 60, size: {} })
})

test("a label is the name in words, with its unit apart", () => {
  const names = ["warmup_epochs", "lr", "sync_bn", "time_limit_s", "min_memory_gb", "labels"]
  const fields = fieldsOf({ properties: Object.fromEntries(names.map((name) => [name, {}])) }, ROOT)
  expect(fields.map(({ label }) => label)).toEqual([
    ...["Warmup epochs", "LR", "Sync BN", "Time limit (s)", "Min memory (GB)", "Labels"],
  ])
})
