import { MantineProvider } from "@mantine/core"
import { QueryClient, QueryClientProvider } from "@tanstack/react-query"
import { configure, fireEvent, render, screen, waitFor } from "@testing-library/react"
import { beforeEach, expect, test, vi } from "vitest"
import { Router } from "wouter"
import { memoryLocation } from "wouter/memory-location"

import { Rights, RightsContext } from "../session/rights"
import { ProblemError, UnreachableError } from "../api/problems"
import type { Job, Plan, SubmittedJob } from "../api/types"
import type { JsonObject } from "../format/json"
import { JobForm } from "./JobForm"
import { KeptDraft } from "./keptDraft"
import { plan, send, type Parent } from "./requests"
import { fieldsOf } from "./schemas"

// A form of this size is slow to draw where a machine has much else to do.
vi.setConfig({ testTimeout: 60_000 })
configure({ asyncUtilTimeout: 20_000 })

const FIELDS = fieldsOf(
  {
    properties: {
      train: {
        type: "object",
        properties: {
          recipe: { type: "string", default: "classification" },
          model: { type: "string", default: "" },
          data: { type: "string", default: "" },
          batch: { type: "integer", default: 64 },
          patience: { anyOf: [{ type: "integer" }, { type: "null" }] },
        },
      },
      device: { anyOf: [{ type: "string" }], default: "auto" },
      name: { anyOf: [{ type: "string" }, { type: "null" }] },
    },
  },
  {},
)
const PLAN: Plan = {
  starts_now: true,
  placements: [{ node_rank: 0, host: "a", devices: ["cuda:0"] }],
  ...{ reason: null, position: 1, predicted_start: null, waits_for: [], hosts: [], warnings: [] },
  ...{ world_size: 1, batch_per_rank: 64 },
}

vi.mock(import("./requests"), async (original) => ({ ...(await original()), plan: vi.fn(), send: vi.fn() }))
beforeEach(() => {
  vi.mocked(plan).mockResolvedValue(PLAN)
  vi.mocked(send).mockResolvedValue({ id: 5, warnings: [] as string[] } as SubmittedJob)
  sessionStorage.clear()
  Element.prototype.scrollIntoView = () => undefined
  // Recipes, data sets and hosts are on their way for as long as a test takes.
  vi.stubGlobal("fetch", () => new Promise(() => undefined))
})

/** The keys under which the job was sent. */
const keysSent = () => vi.mocked(send).mock.calls.map(([, key]) => key)
const never = () => new Promise<never>(() => undefined)
const refusal = (field: string, message: string) => new ProblemError(422, message, [{ field, message }])

function show(first: JsonObject, parent: Parent | null = null) {
  const place = memoryLocation({ path: "/jobs/new", record: true })
  const rights = new Rights({ user: "ann", role: "submitter", token_id: 1, access: "tokens" })
  const { unmount } = render(
    <MantineProvider env="test">
      <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
        <RightsContext value={rights}>
          <Router hook={place.hook}>
            <JobForm fields={FIELDS} first={first} parent={parent} kept={new KeptDraft("ann", "")} />
          </Router>
        </RightsContext>
      </QueryClientProvider>
    </MantineProvider>,
  )
  return { unmount, place }
}

/** By label and text: roles are slow to find in a tree of this size. */
function type(label: string, value: string) {
  fireEvent.change(inputOf(label), { target: { value } })
}

function inputOf(label: string) {
  return screen.getByLabelText(label, { selector: "input" })
}

function press(text: string) {
  fireEvent.click(screen.getByText(text))
}

test("what would come of the job is asked once typing rests, and only what was set is sent", async () => {
  show({ train: { model: "resnet18" } })
  expect(screen.getByText("Name data to see where it would run.")).toBeTruthy()
  type("Data", "digits")
  expect(await screen.findByText("It would start now")).toBeTruthy()
  expect(vi.mocked(plan).mock.calls.map(([spec]) => spec)).toEqual([{ train: { model: "resnet18", data: "digits" } }])
})

test("an answer about the job as it was is not shown as one about the job as it is", async () => {
  show({ train: { model: "resnet18", data: "digits" } })
  await screen.findByText("It would start now")
  vi.mocked(plan).mockImplementation(never)
  type("Batch", "32")
  expect(screen.getByText("Asking again; this was: It would start now")).toBeTruthy()
})

test("what the service finds wrong is said at its field until that is edited", async () => {
  vi.mocked(plan).mockRejectedValue(refusal("train.batch", "33 samples do not divide"))
  show({ train: { model: "resnet18", data: "digits", batch: 33 } })
  const batch = inputOf("Batch")
  await waitFor(() => expect(batch.getAttribute("aria-invalid")).toBe("true"))
  type("Batch", "34")
  expect(batch.getAttribute("aria-invalid")).not.toBe("true")
})

test("two presses submit one job", async () => {
  show({ train: { model: "resnet18", data: "digits" } })
  press("Submit job")
  press("Submit job")
  await waitFor(() => expect(sessionStorage.length).toBe(0))
  press("Submit job")
  expect(send).toHaveBeenCalledTimes(1)
})

test("what had no answer is sent again under its key, and another job under another", async () => {
  vi.mocked(send).mockRejectedValue(new UnreachableError())
  show({ train: { model: "resnet18", data: "digits" } })
  press("Submit job")
  fireEvent.click(await screen.findByText("Try again"))
  await waitFor(() => expect(send).toHaveBeenCalledTimes(2))
  const [first, again] = keysSent()
  expect(first).toMatch(/^[0-9a-f]{32}$/)
  expect(again).toBe(first)
  type("Name", "a")
  press("Submit job")
  await waitFor(() => expect(send).toHaveBeenCalledTimes(3))
  expect(keysSent()[2]).not.toBe(first)
})

test("a refused submission leads to the first field at fault, also where it is folded away", async () => {
  vi.mocked(plan).mockImplementation(never)
  vi.mocked(send).mockRejectedValue(refusal("train.patience", "too small"))
  show({ train: { model: "resnet18", data: "digits" } })
  press("Submit job")
  const patience = inputOf("Patience")
  await waitFor(() => expect(document.activeElement).toBe(patience))
  expect(patience.closest("details")?.open).toBe(true)
})

test("a draft outlives a reload, and is gone once it is begun anew", async () => {
  show({ train: {} })
  type("Name", "mine")
  expect(new KeptDraft("ann", "").get()?.spec).toEqual({ train: {}, name: "mine" })
  press("Start over")
  const verb = (await screen.findAllByText("Start over")).at(-1)
  if (verb) fireEvent.click(verb)
  expect(new KeptDraft("ann", "").get()).toBeNull()
})

test("a job like somebody else's is sent whole, as one of one's own that begins where that one did", async () => {
  const spec = { train: { model: "resnet18", data: "digits" }, start_from: { job: 3, mode: "weights" } }
  show(spec, { job: { id: 7, user: "bob" } as Job, spec })
  expect(screen.getByText(/Only who owns job 7 and admins can clone it/)).toBeTruthy()
  press("Submit job")
  await waitFor(() => expect(send).toHaveBeenCalled())
  expect(vi.mocked(send).mock.calls.at(-1)?.[0]).toEqual({ kind: "submit", path: "/jobs", body: spec })
})

test("a job like one of one's own is sent as what differs from it", async () => {
  const spec = { train: { model: "resnet18", data: "digits" } }
  show(spec, { job: { id: 7, user: "ann" } as Job, spec })
  expect(screen.queryByText(/can clone it/)).toBeNull()
  press("Submit job")
  await waitFor(() => expect(send).toHaveBeenCalled())
  expect(vi.mocked(send).mock.calls.at(-1)?.[0]).toMatchObject({ kind: "clone", parent: 7, body: { changes: {} } })
})

test("an answer that comes after the form was left leads nobody away, and takes no other draft", async () => {
  let answer: (job: SubmittedJob) => void = () => undefined
  vi.mocked(send).mockImplementation(() => new Promise((resolve) => (answer = resolve)))
  const { unmount, place } = show({ train: { model: "resnet18", data: "digits" } })
  press("Submit job")
  await waitFor(() => expect(send).toHaveBeenCalled())
  unmount()
  const another = new KeptDraft("ann", "")
  another.keep({ name: "another" })
  answer({ id: 5, warnings: [] as string[] } as SubmittedJob)
  await vi.waitFor(() => expect(sessionStorage.getItem("rankzero.sent")).toBeNull())
  await new Promise(setImmediate)
  expect(place.history).toEqual(["/jobs/new"])
  expect(another.get()?.spec).toEqual({ name: "another" })
})
