/** What a rank has printed, as plain text. */
import Anser from "anser"

import { count } from "../../format/numbers"

/** Without the codes that colour it; of a line that was written over, as progress bars are, what was left at the end. */
export function plainText(printed: string): string {
  return Anser.ansiToText(printed)
    .split("\n")
    .map((line) => line.replace(/\r+$/, "").split("\r").at(-1) ?? "")
    .join("\n")
    .trimEnd()
}

/** A traceback may be of any length; so many characters of its end say what happened. */
const MOST = 64 * 1024

/** Its last lines, with a word of what was left out. */
export function endOf(text: string): string {
  if (text.length <= MOST) return text
  const begin = text.indexOf("\n", text.length - MOST) + 1 || text.length - MOST
  return `… ${count(begin)} characters before this are left out …\n${text.slice(begin)}`
}

/** Whether the log's end has the traceback's last line in it: a rank prints its traceback too, and once is enough. */
export function repeats(logTail: string, traceback: string): boolean {
  const last = traceback.trimEnd().split("\n").at(-1)?.trim() ?? ""
  return last !== "" && logTail.includes(last)
}
