"""`/docs`: the schema to read and to try out in a browser. Everything that it loads comes from this service."""

from importlib.resources import files
from importlib.util import find_spec

from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.staticfiles import StaticFiles
from starlette.responses import Response

from jobs.errors import NotFoundError

PACKAGE = "fastapi_offline"
"""It carries Swagger UI as a wheel; FastAPI's own page would load that from a foreign host."""
_ONLY_FROM_HERE = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""For the browser to enforce. The page's one inline script is FastAPI's, and has nothing in it that a client sent."""


def add_docs(app: FastAPI) -> None:
    """Serve `/docs` and its files under it; without the package, a line that names it."""
    is_installed = find_spec(PACKAGE) is not None

    def docs(request: Request) -> Response:
        if not is_installed:
            raise NotFoundError("this page needs the package fastapi-offline; the schema is at /openapi.json")
        root = request.scope.get("root_path", "").rstrip("/")
        page = get_swagger_ui_html(
            openapi_url=f"{root}{app.openapi_url}",
            title=f"{app.title} API",
            swagger_js_url=f"{root}/docs/swagger-ui-bundle.js",
            swagger_css_url=f"{root}/docs/swagger-ui.css",
            swagger_favicon_url=f"{root}/docs/favicon.png",
            # Left to itself it shows a badge of a validator on a foreign host.
            swagger_ui_parameters={"validatorUrl": None, "tryItOutEnabled": True, "persistAuthorization": False},
        )
        page.headers["Content-Security-Policy"] = _ONLY_FROM_HERE
        return page

    app.add_route("/docs", docs, include_in_schema=False)
    if is_installed:
        app.mount("/docs", StaticFiles(directory=str(files(PACKAGE) / "static")), name="docs")
