import { render } from "@testing-library/react"
import userEvent from "@testing-library/user-event"
import { expect, test, vi } from "vitest"

import { useAction } from "./actions"
import { useKeys } from "./useKeys"

function Page({ run, other }: { run: () => void; other: () => void }) {
  useKeys()
  useAction({ id: "jobs", title: "Jobs", section: "Go to", keys: "g j", run })
  useAction({ id: "down", title: "Next", section: "This page", keys: "j", run: other })
  return <input aria-label="Name" />
}

function setUp() {
  const run = vi.fn()
  const other = vi.fn()
  const shown = render(<Page run={run} other={other} />)
  return { run, other, shown, user: userEvent.setup() }
}

test("two keys in a row are one command, and its second key alone another", async () => {
  const { run, other, user } = setUp()
  await user.keyboard("gj")
  expect(run).toHaveBeenCalledTimes(1)
  expect(other).not.toHaveBeenCalled()
  await user.keyboard("j")
  expect(other).toHaveBeenCalledTimes(1)
})

test("a first key with no second that fits is forgotten", async () => {
  const { run, other, user } = setUp()
  await user.keyboard("gxj")
  expect(run).not.toHaveBeenCalled()
  expect(other).toHaveBeenCalledTimes(1)
})

test("what is typed into a field is text", async () => {
  const { run, other, user, shown } = setUp()
  await user.type(shown.getByLabelText("Name"), "gj")
  expect(run).not.toHaveBeenCalled()
  expect(other).not.toHaveBeenCalled()
})

test("a key with Control counts also while something is typed", async () => {
  const find = vi.fn()
  function Finding() {
    useAction({ id: "find", title: "Find", section: "Help", keys: "Control+k", run: find })
    return null
  }
  const { user, shown } = setUp()
  render(<Finding />)
  shown.getByLabelText("Name").focus()
  await user.keyboard("{Control>}k{/Control}")
  await user.keyboard("{Meta>}k{/Meta}")
  expect(find).toHaveBeenCalledTimes(2)
})

test("other keys with Control or Alt are the browser's", async () => {
  const { other, user } = setUp()
  await user.keyboard("{Control>}j{/Control}{Alt>}j{/Alt}")
  expect(other).not.toHaveBeenCalled()
})

test("an action is gone with what offered it", async () => {
  const { other, user, shown } = setUp()
  shown.unmount()
  await user.keyboard("j")
  expect(other).not.toHaveBeenCalled()
})
