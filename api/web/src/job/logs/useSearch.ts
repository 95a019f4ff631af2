/** What is looked for in the output, which the address has. */
import { useEffect, useMemo } from "react"

import { useAddress } from "../../parts/address"
import type { Search } from "./matches"
import type { Output } from "./output"

export function useSearch(output: Output) {
  const { params, change } = useAddress()
  const text = params.get("find") ?? ""
  const matchCase = params.has("case")
  const search = useMemo<Search>(() => ({ text, matchCase }), [text, matchCase])
  useEffect(() => output.find(search.text === "" ? null : search), [output, search])
  const setSearch = (changed: Search) => change({ find: changed.text, case: changed.matchCase ? "match" : null })
  return { search, setSearch }
}
