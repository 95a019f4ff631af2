/** What is typed into the search field, as the filters that the service has. */
import type { JobFilters } from "../api/jobPages"

type SearchFilters = Omit<JobFilters, "state" | "sort">

/** The words before a colon that are filters of their own; everything else is part of the name. */
export const SEARCH_WORDS = ["label", "user", "recipe", "model", "host", "priority"] as const

const PART = /(\w+):"([^"]*)"|(\w+):(\S+)|(\S+)/g

/** `resnet label:team=vision user:"ann lee"` → a part of the name, a label and a user. The last of a word counts, of labels all. */
export function filtersOf(text: string): SearchFilters {
  const filters: SearchFilters = {}
  const name: string[] = []
  for (const [whole, quotedWord, quoted, plainWord, plain] of text.matchAll(PART)) {
    const isTaken = take(filters, (quotedWord ?? plainWord ?? "").toLowerCase(), quoted ?? plain ?? "")
    if (!isTaken) name.push(whole)
  }
  if (name.length > 0) filters.name = name.join(" ")
  return filters
}

function take(filters: SearchFilters, word: string, value: string): boolean {
  if (value === "") return false
  switch (word) {
    case "label":
      // Half typed it is no filter yet; the service takes none without a value.
      if (!/^[^=]+=/.test(value)) return true
      filters.label = [...(filters.label ?? []), value]
      return true
    case "priority":
      if (!/^\d{1,3}$/.test(value)) return false
      filters.priority = Number(value)
      return true
    case "user":
    case "recipe":
    case "model":
    case "host":
      filters[word] = value
      return true
    default:
      return false
  }
}
