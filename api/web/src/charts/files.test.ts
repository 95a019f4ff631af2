import { expect, it } from "vitest"

import { csvOf, fileName } from "./files"

const line = { id: "1", inkIndex: 0 }

it("has a column for each line, and nothing where a line has no point", async () => {
  const csv = csvOf(
    [
      { ...line, label: "#1 a", at: [1, 2], values: [0.5, null], kinds: [null, "nan"] },
      { ...line, label: "#2 b", at: [2, 3], values: [7, 8] },
    ],
    "step",
  )
  expect(await read(csv)).toBe("Step,#1 a,#2 b\r\n1,0.5,\r\n2,nan,7\r\n3,,8\r\n")
})

it("quotes names, and defuses what a spreadsheet would run", async () => {
  const csv = csvOf([{ ...line, label: '=cmd,"x"', at: [1], values: [-1] }], "step")
  expect(await read(csv)).toBe(`Step,"'=cmd,""x"""\r\n1,-1\r\n`)
})

it("has time of day as the standard writes it", async () => {
  const csv = csvOf([{ ...line, label: "a", at: [1_700_000_000], values: [1] }], "clock")
  expect(await read(csv)).toContain("2023-11-14T22:13:20.000Z,1")
})

it("makes file names of any metric", () => {
  expect(fileName("job-7", "val/mAP@50:95 (α)")).toBe("job-7-val-mAP-50-95-α-")
})

/** jsdom's blobs cannot be read as text otherwise. */
function read(blob: Blob): Promise<string> {
  return new Promise((resolve) => {
    const reader = new FileReader()
    reader.onload = () => resolve(reader.result as string)
    reader.readAsText(blob)
  })
}
