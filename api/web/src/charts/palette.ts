/** Colours and strokes of lines: told apart also without colour, and with a contrast of 3 to 1 on either ground. */

export type Scheme = "light" | "dark"

interface Ink {
  colour: string
  /** Lengths of strokes and gaps; empty for an unbroken line. */
  dash: number[]
}

/** After Okabe and Ito, darkened for white and lightened for black. */
const COLOURS: Record<Scheme, readonly string[]> = {
  light: ["#0072b2", "#c44e00", "#007d5c", "#a8467f", "#8a6d00", "#4b4bb5"],
  dark: ["#56b4e9", "#ff8c42", "#2cc79b", "#e39ac5", "#e6b422", "#a7a7ff"],
}

/** Four beside six colours: twelve lines in a row each have a pair of their own. */
const DASHES: readonly number[][] = [[], [8, 4], [2, 3], [10, 3, 2, 3]]

export const MOST_LINES = 12

export function ink(index: number, scheme: Scheme): Ink {
  const colours = COLOURS[scheme]
  return { colour: colours[index % colours.length] ?? "", dash: DASHES[index % DASHES.length] ?? [] }
}

/** What is drawn besides the lines. */
export interface Ground {
  paper: string
  text: string
  grid: string
  mark: string
}

export const GROUNDS: Record<Scheme, Ground> = {
  light: { paper: "#ffffff", text: "#495057", grid: "#e9ecef", mark: "#868e96" },
  dark: { paper: "#242424", text: "#c9c9c9", grid: "#3b3b3b", mark: "#828282" },
}
