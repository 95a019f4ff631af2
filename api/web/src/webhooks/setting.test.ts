import { expect, test } from "vitest"

import type { Webhook } from "../api/types"
import { draftOf, settingOf } from "./setting"

const HOOK: Webhook = {
  id: 1,
  url: "https://hooks.example/x",
  topics: ["job.failed"],
  labels: { team: "vision", run: "a=b" },
  description: null,
  enabled: false,
  created_at: "2026-03-01T12:00:00Z",
  updated_at: "2026-03-01T12:00:00Z",
  created_by: null,
}

test("a webhook that is edited and not changed stays what it is", () => {
  const { url, topics, labels, description, enabled } = HOOK
  expect(settingOf(draftOf(HOOK)).setting).toEqual({ url, topics, labels, description, enabled })
})

test("a new one is enabled, and told of everything", () => {
  expect(settingOf({ ...draftOf(undefined), url: " https://x " }).setting).toEqual({
    url: "https://x",
    topics: [],
    labels: {},
    description: null,
    enabled: true,
  })
})

test("a line that is no label is told, and so is one key with two values", () => {
  expect(settingOf({ ...draftOf(HOOK), labels: "team=a\n\nvision" }).problem).toMatch(/vision/)
  expect(settingOf({ ...draftOf(HOOK), labels: "team=a\nteam=b" }).problem).toMatch(/two values/)
})
