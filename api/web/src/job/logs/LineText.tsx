/** The text of a line, in its program's colours, with what is looked for marked. */
import { memo, type CSSProperties } from "react"

import classes from "./Logs.module.css"
import { spans, type Span } from "./terminal"

/** A stretch of a line that is in one style, and in a match or in none. */
interface Stretch {
  span: Span
  text: string
  isMatch: boolean
}

interface LineTextProps {
  text: string
  style: string
  pattern: RegExp | null
}

/** Kept while the text is the same: a region that follows shows each line in many renders. */
export const LineText = memo(function LineText({ text, style, pattern }: LineTextProps) {
  return stretches(spans(text, style), pattern).map(({ span, text: shown, isMatch }, index) =>
    isMatch ? (
      <mark key={index} className={classes.match}>
        {shown}
      </mark>
    ) : (
      <span key={index} className={classesOf(span)} style={coloursOf(span)}>
        {shown}
      </span>
    ),
  )
})

/** Cut a line's spans where matches of a pattern begin and end; a match may go across several. */
function stretches(all: readonly Span[], pattern: RegExp | null): Stretch[] {
  if (!pattern) return all.map((span) => ({ span, text: span.text, isMatch: false }))
  const matches = [
    ...all
      .map(({ text }) => text)
      .join("")
      .matchAll(pattern),
  ]
  const cut: Stretch[] = []
  let begin = 0
  for (const span of all) {
    const end = begin + span.text.length
    let at = begin
    const add = (until: number, isMatch: boolean) => {
      if (until > at) cut.push({ span, text: span.text.slice(at - begin, until - begin), isMatch })
      at = Math.max(at, until)
    }
    for (const { index, 0: found } of matches) {
      if (index >= end) break
      if (index + found.length <= begin) continue
      add(Math.max(index, begin), false)
      add(Math.min(index + found.length, end), true)
    }
    add(end, false)
    begin = end
  }
  return cut
}

function classesOf(span: Span): string | undefined {
  const names = span.decorations.map((decoration) => classes[decoration])
  const { colour, background } = colours(span)
  if (colour !== null) names.push(classes.coloured)
  if (background !== null) names.push(classes.filled)
  if (span.isReversed && colour === null && background === null) names.push(classes.reversed)
  return names.length > 0 ? names.join(" ") : undefined
}

function coloursOf(span: Span): CSSProperties | undefined {
  const { colour, background } = colours(span)
  if (colour === null && background === null) return undefined
  return { "--colour": colour ?? undefined, "--fill": background ?? undefined } as CSSProperties
}

function colours({ colour, background, isReversed }: Span) {
  return isReversed ? { colour: background, background: colour } : { colour, background }
}
