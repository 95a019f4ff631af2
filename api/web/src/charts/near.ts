/** Whether something is on the screen or nearly so: what is not need not be drawn. */
import { useEffect, useState, type RefObject } from "react"

const MARGIN = "200px"

export function useNear(place: RefObject<Element | null>): boolean {
  const [isNear, setNear] = useState(false)
  useEffect(() => {
    const target = place.current
    if (target === null) return
    const observer = new IntersectionObserver(([entry]) => setNear(entry?.isIntersecting ?? false), {
      rootMargin: MARGIN,
    })
    observer.observe(target)
    return () => observer.disconnect()
  }, [place])
  return isNear
}
