"""`/ui/`: the dashboard in a browser, as it was built into `api/static`, and the way there from `/`."""

import gzip
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath

import structlog
from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from api.bundle import HEAD, MANIFEST, PAGE, Bundle, BundleError, File, read
from api.etags import listed
from jobs.access import Access

HASHED = "assets/"
"""Where the build puts files whose names have a digest of their content in them: such a name is never another file."""
BELOW = "ui/"
"""Where a browser is sent to from `/` and `/ui`: relative to these, whatever prefix a proxy has put before them."""
DEEPEST = 16
"""Slashes in the path of a page: no page of the dashboard comes near this."""
AGAIN_S = 1.0
"""How long a build that cannot be read is left alone: reading one takes longer than any other answer."""
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
"""By ending: the machine's own list may lack some, and a browser takes no script of another type."""
GUARDS = {
    # Mantine writes its colours into the page as a style; no script is ever written into it.
    "Content-Security-Policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; "
        "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
"""For the browser to enforce: the dashboard loads from here, sends to here, and is shown in no other site's page."""
NOT_BUILT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="5">
<title>RankZero: the dashboard is not built</title>
<style>body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto; padding: 0 1rem }</style>
</head>
<body>
<main>
<h1>The dashboard is not built</h1>
<p>The service runs, and its API answers all the same. In the folder of the repository, this builds the dashboard and
says what is in its way:</p>
<pre><code>make dashboard</code></pre>
<p>Without make: <code>python -m api.web.build</code>. This page shows the dashboard once it is there.</p>
</main>
</body>
</html>
"""

log = structlog.get_logger()


@dataclass(frozen=True)
class Site:
    """What browsers get of one build."""

    files: Mapping[str, File]
    pages: Sequence[File]
    """The page, by how many folders below `/ui/` it is."""


class Newest:
    """The newest build in a folder, held in memory. One that appears or is replaced counts from the next request on.

    One that goes away stays in memory: for an instant of each replacement there is none in the folder.
    """

    def __init__(self, folder: Path, access: Access) -> None:
        self._manifest = folder / MANIFEST
        self._access = access
        self._lock = threading.Lock()
        self._held: tuple[int, int] | None = None
        self._damaged: tuple[int, int] | None = None
        self._look_again = 0.0
        self._site: Site | None = None

    def site(self) -> Site | None:
        """Return it; None where there has been none yet."""
        try:
            found = self._manifest.stat()
        except OSError:
            return self._site
        edition = (found.st_ino, found.st_mtime_ns)
        with self._lock:
            is_left_alone = edition == self._damaged and time.monotonic() < self._look_again
            if edition != self._held and not is_left_alone:
                self._look_at(edition)
            return self._site

    def _look_at(self, edition: tuple[int, int]) -> None:
        try:
            bundle = read(self._manifest.parent)
        except BundleError as error:
            # Between two builds, and gone with the next request; or for good, and then the log says so once.
            if edition != self._damaged:
                log.warning("dashboard_unreadable", error=str(error))
            self._damaged, self._look_again = edition, time.monotonic() + AGAIN_S
        else:
            pages = [_page(bundle, depth, self._access) for depth in range(DEEPEST + 1)]
            self._site, self._held, self._damaged = Site(bundle.files, pages), edition, None


def add_dashboard(app: FastAPI, folder: Path, *, access: Access) -> None:
    """Serve the dashboard that is, or will be, built into a folder. No token is asked for: it has nobody's data.

    `access` is how the API knows who asks: the page is told, and asks for a token without a request that fails first.
    """
    newest = Newest(folder, access)

    def root(request: Request) -> Response:
        if "text/html" not in request.headers.get("accept", ""):
            raise HTTPException(404)
        return RedirectResponse(BELOW, 307, headers={"Vary": "Accept"})

    def without_slash(_: Request) -> Response:
        return RedirectResponse(BELOW, 307)

    def file(request: Request) -> Response:
        path: str = request.path_params["path"]
        site = newest.site()
        found = None if site is None else site.files.get(path)
        if found is not None and path != PAGE:
            return _answer(request, found, path)
        depth = _depth(request)
        if not (_is_page(path) and 0 <= depth <= DEEPEST):
            raise HTTPException(404)
        if site is None:
            return HTMLResponse(NOT_BUILT, 503, headers=GUARDS | {"Cache-Control": "no-store"})
        return _answer(request, site.pages[depth], PAGE)

    app.add_route("/", root, include_in_schema=False)
    app.add_route("/ui", without_slash, include_in_schema=False)
    app.add_route("/ui/{path:path}", file, include_in_schema=False)


def _is_page(path: str) -> bool:
    """Whether a path is a page's rather than a file's; the name of a host in it may have dots too, but no way up."""
    is_file = path.startswith(HASHED) or PurePosixPath(path).suffix in MEDIA_TYPES
    return path == PAGE or not (is_file or ".." in path.split("/"))


def _depth(request: Request) -> int:
    """Return how many folders below `/ui/` a browser takes itself to be: it goes by the slashes that it has sent."""
    sent: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    root: str = request.scope.get("root_path", "")
    return sent.count(b"/") - f"{root}/ui/".count("/")


def _page(bundle: Bundle, depth: int, access: Access) -> File:
    """Return the page, with the address of `/ui/` in it: to that it takes the rest to be relative, and finds the API.

    As a way up from where it is, it is right whatever is put before it on the way here. A proxy that takes a prefix off
    does not say so.
    """
    page = bundle.files[PAGE]
    told = f'<base href="{"../" * depth or "./"}"><meta name="rankzero-access" content="{access}">'
    content = page.content.replace(HEAD, HEAD + told.encode(), 1)
    return File(content, gzip.compress(content, mtime=0), sha256(content).hexdigest())


def _answer(request: Request, file: File, path: str) -> Response:
    is_compressed = file.compressed is not None and _takes_gzip(request.headers)
    tag = f"{file.digest[:20]}{'-gzip' if is_compressed else ''}"
    headers = GUARDS | {
        "Cache-Control": "public, max-age=31536000, immutable" if path.startswith(HASHED) else "no-cache",
        "ETag": f'"{tag}"',
    }
    if file.compressed is not None:
        headers["Vary"] = "Accept-Encoding"
    if tag in listed(request.headers.get("if-none-match")):
        return Response(status_code=304, headers=headers)
    if is_compressed:
        headers["Content-Encoding"] = "gzip"
    content = file.compressed if is_compressed else file.content
    media_type = MEDIA_TYPES.get(PurePosixPath(path).suffix, "application/octet-stream")
    return Response(content, headers=headers, media_type=media_type)


def _takes_gzip(headers: Mapping[str, str]) -> bool:
    """Whether gzip is among the codings that a client takes (RFC 9110, section 12.5.3)."""
    for each in headers.get("accept-encoding", "").lower().split(","):
        coding, _, weight = each.partition(";")
        if coding.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
