/** Smoothed curves: the exponential moving average without the bias of its beginning, as TensorBoard draws it. */

/**
 * Return the smoothed values; `weight` (0 to below 1) is what the past counts for. Where a value is not finite there is a
 * gap, and the average goes on behind it. It is over the points that are shown: of a thinned series, over those that were kept.
 */
export function smoothed(values: readonly (number | null)[], weight: number): (number | null)[] {
  let sum = 0
  let share = 1
  const first = values.find((value) => value !== null)
  // A constant must stay itself to the last bit, which the division below would cost.
  const isConstant = values.every((value) => value === null || value === first)
  return values.map((value) => {
    if (value === null || isConstant) return value
    sum = sum * weight + value * (1 - weight)
    share *= weight
    return sum / (1 - share)
  })
}
