import { render } from "@testing-library/react"
import { expect, test } from "vitest"

import { LineText } from "./LineText"
import { patternOf } from "./matches"

test("a match across two colours is marked in both, and the text is whole", () => {
  const pattern = patternOf({ text: "loss 3", matchCase: false })
  const { container } = render(<LineText text={"my \u001b[31mlos\u001b[0ms 3 end"} style="" pattern={pattern} />)
  expect(container.textContent).toBe("my loss 3 end")
  expect([...container.querySelectorAll("mark")].map(({ textContent }) => textContent)).toEqual(["los", "s 3"])
})

test("text that looks like HTML is text", () => {
  const { container } = render(<LineText text={"<img src=x onerror=alert(1)>"} style="" pattern={null} />)
  expect(container.querySelector("img")).toBeNull()
  expect(container.textContent).toBe("<img src=x onerror=alert(1)>")
})

test("a colour is told by its hue alone, so that its lightness can be that of the page", () => {
  const { container } = render(<LineText text={"\u001b[31mred"} style="" pattern={null} />)
  expect(container.querySelector("span")?.style.getPropertyValue("--colour")).toBe("187, 0, 0")
})
