/** A small curve of a few values, for a row of a table. */

const WIDTH = 44
const HEIGHT = 18

export function Sparkline({ values, label }: { values: readonly number[]; label: string }) {
  if (values.length < 2) return null
  const low = Math.min(...values)
  const span = Math.max(...values) - low || 1
  const points = values
    .map((value, index) => {
      const x = 1 + (index / (values.length - 1)) * (WIDTH - 2)
      const y = HEIGHT - 2 - ((value - low) / span) * (HEIGHT - 4)
      return `${x.toFixed(1)},${y.toFixed(1)}`
    })
    .join(" ")
  return (
    <svg width={WIDTH} height={HEIGHT} role="img" aria-label={label}>
      <polyline points={points} fill="none" stroke="var(--mantine-primary-color-filled)" strokeWidth={1.5} />
    </svg>
  )
}
