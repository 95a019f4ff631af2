import { describe, expect, it } from "vitest"

import type { Job } from "../../api/types"
import type { Service } from "../../format/commands"
import { pythonLiteral } from "./pythonLiteral"
import { snippetsFor, type TabPath } from "./snippets"

const HERE: Service = { url: "http://127.0.0.1:8000", asksForTokens: false }
const FAR: Service = { url: "https://gpu.example.org/rankzero", asksForTokens: true }
const TABS: TabPath[] = ["", "metrics", "logs", "checkpoints", "timeline", "spec"]

const JOB = {
  id: 7,
  priority: 90,
  labels: { team: "vision" },
  spec: {
    device: "cuda:0",
    host: null,
    priority: 50,
    labels: {},
    train: { model: "resnet18", compile: false, lr: 1e-7 },
  },
} as unknown as Job

function first(tab: TabPath, service: Service) {
  const [snippet] = snippetsFor(tab, JOB, service)
  if (snippet === undefined) throw new Error(`${tab} has no snippet`)
  return snippet
}

describe("on this machine", () => {
  it("a job is shown by three lines without a token", () => {
    expect(first("", HERE)).toEqual({
      title: "This job",
      cli: "rankzero show 7 --url http://127.0.0.1:8000",
      curl: "curl -sSf http://127.0.0.1:8000/jobs/7",
      python: [
        "from rankzero import Client",
        "",
        'client = Client("http://127.0.0.1:8000")',
        "job = client.get(7)",
        "print(job.state, job.progress)",
      ].join("\n"),
    })
  })

  it("what goes into a file is named behind the command's own words", () => {
    expect(first("metrics", HERE).cli).toBe("rankzero metrics 7 --csv --url http://127.0.0.1:8000 > job-7.csv")
    expect(first("metrics", HERE).curl).toBe("curl -sSf -o job-7.csv 'http://127.0.0.1:8000/jobs/7/metrics?format=csv'")
  })

  it("the commands of each tab are about this job", () => {
    for (const tab of TABS) {
      for (const { cli, curl, python } of snippetsFor(tab, JOB, HERE)) {
        expect(cli).toMatch(/^rankzero \w+ (7|-) .*--url http:\/\/127\.0\.0\.1:8000/)
        expect(curl).toMatch(/^curl -sSf .*http:\/\/127\.0\.0\.1:8000\/(jobs|events)/)
        expect(python).toContain('client = Client("http://127.0.0.1:8000")\n')
      }
    }
  })

  it("a spec is submitted as it is now, with what was changed since", () => {
    const [, submitting] = snippetsFor("spec", JOB, HERE)
    const [head, ...lines] = submitting?.cli.split("\n") ?? []
    expect(head).toBe("rankzero submit - --detach --url http://127.0.0.1:8000 <<'SPEC'")
    expect(lines.at(-1)).toBe("SPEC")
    expect(JSON.parse(lines.slice(0, -1).join("\n"))).toEqual({ ...JOB.spec, priority: 90, labels: { team: "vision" } })
  })
})

describe("where the service asks for tokens", () => {
  it("no snippet has the text of one", () => {
    expect(first("", FAR).curl).toBe(
      'curl -sSf -H "Authorization: Bearer $RANKZERO_TOKEN" https://gpu.example.org/rankzero/jobs/7',
    )
    expect(first("", FAR).cli).toBe("rankzero show 7 --url https://gpu.example.org/rankzero")
    expect(first("", FAR).python).toContain(
      'Client("https://gpu.example.org/rankzero")  # its token is that of rankzero login, or RANKZERO_TOKEN',
    )
  })

  it("plain http in a network takes a word of trust", () => {
    const service = { url: "http://gpu.lan:8000", asksForTokens: true }
    expect(first("", service).cli).toBe("RANKZERO_INSECURE=1 rankzero show 7 --url http://gpu.lan:8000")
    expect(first("", service).python).toContain('Client("http://gpu.lan:8000", insecure=True)')
    expect(first("", { ...service, url: "http://localhost:8000" }).cli).toBe(
      "rankzero show 7 --url http://localhost:8000",
    )
  })
})

it("A JSON value is written as Python has it", () => {
  expect(pythonLiteral({ a: null, b: [true, "x\n'\""], c: {}, d: { e: 1e-7 } })).toBe(
    [
      "{",
      '    "a": None,',
      '    "b": [True, "x\\n\'\\""],',
      '    "c": {},',
      '    "d": {',
      '        "e": 1e-7,',
      "    },",
      "}",
    ].join("\n"),
  )
})
