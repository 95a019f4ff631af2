"""The HTTP application: settings of the web framework, the routes, and one form for every error."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from api import errors
from api.gate import Gate
from api.routes import health, hosts, jobs, plan, quotas, telemetry, verbs
from jobs.access import Access
from jobs.database import get_database
from jobs.logs import configure_logs
from jobs.settings import get_settings


class Application(FastAPI):
    """FastAPI, with an announced body that is too large refused in the same form as any other error."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # FastAPI counts what arrives and refuses that by itself; only for an announced length it answers in plain text.
        if scope["type"] == "http" and _announced_bytes(scope) > errors.MAX_BODY_BYTES:
            await errors.body_too_large()(scope, receive, send)
            return
        await super().__call__(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        """Return the schema, in which every error is a problem document and nothing else."""
        if self.openapi_schema is None:
            for path in super().openapi()["paths"].values():
                for operation in path.values():
                    errors.only_problems(operation["responses"])
        assert self.openapi_schema is not None
        return self.openapi_schema


def create_app(access: Access | None = None) -> FastAPI:
    """Return the application; its settings are those of the process (`jobs.settings`).

    `access` counts where the settings name none. Without either it asks for tokens: it cannot know who reaches it.
    """
    app = Application(
        title="RankZero",
        version=version("rankzero"),
        description="Post a training job with a device list; get rank 0's metrics and checkpoints back.",
        lifespan=_lifespan,
        max_body_size=errors.MAX_BODY_BYTES,
        # The bundled pages load their scripts from a foreign host.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        responses=errors.DOCUMENTED,
    )
    app.add_middleware(Gate, access=get_settings().access or access or Access.TOKENS)
    errors.install(app)
    app.include_router(plan.router)  # before the routes that would take its path for a job's id
    app.include_router(jobs.router)
    app.include_router(verbs.router)
    app.include_router(hosts.router)
    app.include_router(quotas.router)
    app.include_router(telemetry.router)
    app.include_router(health.router)
    return app


@asynccontextmanager
async def _lifespan(_app: FastAPI) -> AsyncIterator[None]:
    configure_logs()
    yield
    get_database().dispose()


def _announced_bytes(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "")
    return int(length) if length.isdecimal() else 0
