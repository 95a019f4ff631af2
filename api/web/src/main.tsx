/** Begins the dashboard. */
import "./mantine"
import "./main.css"

import { StrictMode } from "react"
import { createRoot } from "react-dom/client"

import { App } from "./app/App"

const BEGUN_ANEW = "rankzero.begun-anew"

// After an upgrade a page that is still open looks for parts of the earlier build: it is begun anew with the new one,
// once, as a service without them would have it begin anew for ever.
window.addEventListener("vite:preloadError", (event) => {
  if (sessionStorage.getItem(BEGUN_ANEW) === location.href) return
  sessionStorage.setItem(BEGUN_ANEW, location.href)
  event.preventDefault()
  location.reload()
})

const root = document.getElementById("root")
if (root === null) throw new Error("index.html has no #root")
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
)
