/** What is looked for in the output, which the address has. */
import { useEffect, useMemo } from "react"
import { useSearchParams } from "wouter"

import type { Search } from "./matches"
import type { Output } from "./output"

export function useSearch(output: Output) {
  const [params, setParams] = useSearchParams()
  const text = params.get("find") ?? ""
  const matchCase = params.has("case")
  const search = useMemo<Search>(() => ({ text, matchCase }), [text, matchCase])
  useEffect(() => output.find(search.text === "" ? null : search), [output, search])
  const setSearch = (changed: Search) =>
    setParams(
      (before) => {
        const after = new URLSearchParams(before)
        if (changed.text === "") after.delete("find")
        else after.set("find", changed.text)
        if (changed.matchCase) after.set("case", "")
        else after.delete("case")
        return after
      },
      // Each letter would be a page to go back to.
      { replace: true },
    )
  return { search, setSearch }
}
