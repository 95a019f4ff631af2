/** Hands files to the browser, which keeps them where its user's downloads go. */

/** How long what is in memory is kept after the click: the browser begins to read it only then. */
const KEPT_MS = 60_000

export function saveFrom(address: string, name: string): void {
  const link = document.createElement("a")
  link.href = address
  link.download = name
  link.click()
}

export function save(content: Blob, name: string): void {
  const address = URL.createObjectURL(content)
  saveFrom(address, name)
  setTimeout(() => URL.revokeObjectURL(address), KEPT_MS)
}
