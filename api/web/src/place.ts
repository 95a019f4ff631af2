/** Where this page is: the paths of the dashboard and of the API beside it, also behind a proxy that adds a prefix. */

const dashboard = new URL(".", document.baseURI)

/** Path of the dashboard, without a slash at its end: `/ui`, or `/prefix/ui`. */
export const dashboardPath = dashboard.pathname.replace(/\/$/, "")

/** Address of the API, without a slash at its end: `http://host:8000`, or `https://host/prefix`. */
export const apiAddress = new URL("..", dashboard).href.replace(/\/$/, "")
