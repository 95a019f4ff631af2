import { expect, test } from "vitest"

import { firstCommands } from "./firstCommands"

test("where no token is asked for, one command submits the first job", () => {
  const { command, curl } = firstCommands({ url: "http://127.0.0.1:8000", asksForTokens: false })
  expect(command).toBe(
    "rankzero submit --model resnet18 --data digits \\\n  --set image_size=32 --epochs 5 --lr 0.05 --url http://127.0.0.1:8000",
  )
  expect(curl).not.toContain("Authorization")
})

test("where one is asked for it is kept first, and sent over plain http in a network only by a word of trust", () => {
  const { command, curl } = firstCommands({ url: "http://gpu.lan:8000", asksForTokens: true })
  expect(command.split("\n")).toEqual([
    "rankzero login --url http://gpu.lan:8000 --insecure",
    "RANKZERO_INSECURE=1 rankzero submit --model resnet18 --data digits \\",
    "  --set image_size=32 --epochs 5 --lr 0.05 --url http://gpu.lan:8000",
  ])
  expect(curl).toContain('"Authorization: Bearer $RANKZERO_TOKEN"')
})
