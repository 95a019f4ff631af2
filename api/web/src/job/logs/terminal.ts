/** What a terminal would make of a line of output: returns, backspaces, colours, and what else programs send to one. */
import Anser from "anser"

/** A stretch of text in one style. */
export interface Span {
  text: string
  /** Red, green and blue, `187, 0, 0`, as the program asked; null for the page's own. */
  colour: string | null
  background: string | null
  isReversed: boolean
  decorations: readonly Decoration[]
}

type Decoration = "bold" | "dim" | "italic" | "underline" | "strikethrough"

const ESCAPE = "\u001b"
/** Text of a line begins with the sequences that set its style; more of them than this is no program's intent. */
const LONGEST_STYLE = 200
const DECORATIONS: ReadonlySet<string> = new Set<Decoration>(["bold", "dim", "italic", "underline", "strikethrough"])

/* eslint-disable no-control-regex -- it is the control characters that are looked for */
/** Sequences of ECMA-48: titles and links (OSC), other strings, CSI with its parameters, and the short ones. */
const SEQUENCE =
  /\u001b(?:\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|\[[0-?]*[ -/]*[@-~]?|[ -/]*[0-~]?)/g
const STYLE = /\u001b\[([\d;]*)m/g
/** Control characters that are left when sequences are out; a tab is one that text has. */
const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/g
/* eslint-enable no-control-regex */

/** Return a line as it stands after each return to its beginning has been written over, and each backspace. */
export function settled(raw: string): string {
  let text = raw
  if (text.includes("\r")) {
    text = ""
    for (const written of raw.split("\r")) if (written !== "") text = writtenOver(text, written)
  }
  return text.includes("\b") ? backspaced(text) : text
}

/** Return the sequences of the style that holds behind a line, where `style` holds at its beginning. */
export function styleBehind(style: string, text: string): string {
  if (!text.includes(ESCAPE)) return style
  let behind = style
  for (const [sequence, parameters = ""] of text.matchAll(STYLE)) {
    if (/^0*$/.test(parameters)) behind = ""
    else if (/^0*;/.test(parameters) || behind.length + sequence.length > LONGEST_STYLE) behind = sequence
    else behind += sequence
  }
  return behind
}

/** Return a line's text alone, as it is searched and copied. */
export function plain(text: string): string {
  return visible(text.includes(ESCAPE) ? text.replace(SEQUENCE, "") : text)
}

/** Return the stretches of a line that begins in `style`; together they have the text of `plain`. */
export function spans(text: string, style: string): Span[] {
  if (style === "" && !text.includes(ESCAPE)) return [{ ...PLAIN, text: visible(text) }]
  const styled = (style + text).replace(SEQUENCE, (sequence) => (isStyle(sequence) ? sequence : ""))
  return Anser.ansiToJson(styled, { remove_empty: true }).map((entry) => ({
    text: visible(entry.content),
    // The library's types promise a text; it gives null for what was not set.
    colour: entry.fg,
    background: entry.bg,
    isReversed: entry.decorations.includes("reverse"),
    decorations: entry.decorations.filter(isShown),
  }))
}

const PLAIN = { colour: null, background: null, isReversed: false, decorations: [] }

/** Where either has sequences in it, columns can't be told by counting; what is written last is then all there is. */
function writtenOver(before: string, written: string): string {
  if (written.length >= before.length || before.includes(ESCAPE) || written.includes(ESCAPE)) return written
  return written + before.slice(written.length)
}

function backspaced(text: string): string {
  if (text.includes(ESCAPE)) return text.replaceAll("\b", "")
  const columns: string[] = []
  let column = 0
  for (const character of text) {
    if (character === "\b") column = Math.max(0, column - 1)
    else columns[column++] = character
  }
  return columns.join("")
}

/** Control characters by their pictures (␀ for NUL), so that none does anything to the page and none is hidden. */
function visible(text: string): string {
  return text.replace(CONTROL, (character) => {
    const code = character.charCodeAt(0)
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "\u2421" : "\ufffd"
  })
}

function isStyle(sequence: string): boolean {
  return sequence.startsWith(`${ESCAPE}[`) && /^[\d;]*m$/.test(sequence.slice(2))
}

function isShown(decoration: string): decoration is Decoration {
  return DECORATIONS.has(decoration)
}
