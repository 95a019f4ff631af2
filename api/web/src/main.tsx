/** Begins the dashboard. */
import "./mantine"
import "./main.css"

import { StrictMode } from "react"
import { createRoot } from "react-dom/client"

import { App } from "./app/App"

const BEGUN_ANEW = "rankzero.begun-anew"

// After an upgrade a page that is still open looks for parts of the earlier build: it is begun anew with the new one.
// Once for each part, whose name changes with each build: a service that lacks it would have it begin anew for ever.
window.addEventListener("vite:preloadError", (event) => {
  const part = event.payload.message
  if (sessionStorage.getItem(BEGUN_ANEW) === part) return
  sessionStorage.setItem(BEGUN_ANEW, part)
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
