/** What a rank has printed, as plain text. */
import Anser from "anser"

/** Without the codes that colour it; of a line that was written over, as progress bars are, what was left at the end. */
export function plainText(printed: string): string {
  return Anser.ansiToText(printed)
    .split("\n")
    .map((line) => line.replace(/\r+$/, "").split("\r").at(-1) ?? "")
    .join("\n")
    .trimEnd()
}

/** Whether the log's end has the traceback's last line in it: a rank prints its traceback too, and once is enough. */
export function repeats(logTail: string, traceback: string): boolean {
  const last = traceback.trimEnd().split("\n").at(-1)?.trim() ?? ""
  return last !== "" && logTail.includes(last)
}
