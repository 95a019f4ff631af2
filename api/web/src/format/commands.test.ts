import { expect, test } from "vitest"

import { Wording } from "./commands"

test("a token is kept only for a service that asks for one, and over plain http in a network only by a word of trust", () => {
  const logins = ["https://gpu.example/rz", "http://gpu.lan:8000", "http://localhost:8000"].map((url) =>
    new Wording({ url, asksForTokens: true }).login(),
  )
  expect(logins).toEqual([
    "rankzero login --url https://gpu.example/rz",
    "rankzero login --url http://gpu.lan:8000 --insecure",
    "rankzero login --url http://localhost:8000",
  ])
  expect(new Wording({ url: "http://gpu.lan:8000", asksForTokens: false }).login()).toBeNull()
})

test("what a shell would read in an address or in a body is no part of the command", () => {
  const to = new Wording({ url: "https://gpu.example/it's;here", asksForTokens: false })
  expect(to.cli("show 7")).toBe("rankzero show 7 --url 'https://gpu.example/it'\\''s;here'")
  expect(to.curlWith("/jobs", { name: "it's $HOME" })).toMatch(/<<'BODY'\n{\n {2}"name": "it's \$HOME"\n}\nBODY$/)
})

test("the token itself is in no command", () => {
  const to = new Wording({ url: "https://gpu.example", asksForTokens: true })
  expect(to.curl("/jobs")).toBe('curl -sSf -H "Authorization: Bearer $RANKZERO_TOKEN" https://gpu.example/jobs')
})
