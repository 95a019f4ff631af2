/** What the service has written into the page: by which address it is reached, also behind a proxy, and whom it lets in. */

const dashboard = new URL(".", document.baseURI)

/** Path of the dashboard, without a slash at its end: `/ui`, or `/prefix/ui`. */
export const dashboardPath = dashboard.pathname.replace(/\/$/, "")

/** Address of the API, without a slash at its end: `http://host:8000`, or `https://host/prefix`. */
export const apiAddress = new URL("..", dashboard).href.replace(/\/$/, "")

/** Whether the service asks everybody for a token; false where it does not say so, as in development. */
export const asksForTokens =
  document.querySelector<HTMLMetaElement>('meta[name="rankzero-access"]')?.content === "tokens"
