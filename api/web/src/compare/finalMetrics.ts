/** What each metric came to in each job, and whose value is the best where it is known what is better. */
import { extremes } from "../charts/curve"
import { sectionsOf } from "../charts/panels"
import type { Curves } from "../charts/metricStore"
import { figure } from "../format/numbers"

export interface Cell {
  /** The last value as text. */
  last: string
  /** The best value and its step; null where no value is finite, or where nothing is known to be better. */
  best: { value: number; step: number } | null
  /** Whether no other job has a better one. */
  isBest: boolean
}

export interface Row {
  name: string
  better: Better
  /** By job; null where it does not have the metric. */
  cells: (Cell | null)[]
}

type Better = "lower" | "higher" | null

const LOWER = /loss|error|perplexity|(^|[/_])(ppl|mae|mse|rmse|wer|cer|fid)($|[/_@])/i
const HIGHER = /acc|precision|recall|(^|[/_])(f1|m?ap|m?iou|auc|auroc|dice|bleu|rouge|psnr|ssim|r2|top\d+)($|[/_@\d])/i

/** Return which values of a metric are better, by its name. */
export function betterOf(name: string): Better {
  if (LOWER.test(name)) return "lower"
  return HIGHER.test(name) ? "higher" : null
}

/** Return a row for each metric that any of the jobs has. */
export function finalMetrics(jobs: readonly (Curves | undefined)[]): Row[] {
  const names = new Set(jobs.flatMap((curves) => [...(curves?.keys() ?? [])]))
  const sorted = sectionsOf(names, { isTogether: false }).flatMap(({ panels }) =>
    panels.flatMap((panel) => panel.names),
  )
  return sorted.map((name) => {
    const better = betterOf(name)
    const cells = jobs.map((curves) => cellOf(curves, name, better))
    const values = cells.flatMap((cell) => cell?.best?.value ?? [])
    const best = better === "lower" ? Math.min(...values) : Math.max(...values)
    // One job alone is not better than any other.
    const isContest = values.length > 1 && values.some((value) => value !== best)
    return {
      name,
      better,
      cells: cells.map((cell) => cell && { ...cell, isBest: isContest && cell.best?.value === best }),
    }
  })
}

function cellOf(curves: Curves | undefined, name: string, better: Better): Cell | null {
  const curve = curves?.get(name)
  if (!curve) return null
  const { last, lowest, highest } = extremes(curve.steps, curve.values, curve.kinds)
  const found = better === "lower" ? lowest : better === "higher" ? highest : null
  return {
    last: last ? figure(last.value, last.kind) : "–",
    best: found && { value: found.value, step: found.at },
    isBest: false,
  }
}
