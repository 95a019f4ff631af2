"""The HTTP application: settings of the web framework, what surrounds every request, and the routes."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from api import errors, observing, schema
from api.bodies import AnnouncedLimit, refuse_ambiguous
from api.bundle import STATIC
from api.dashboard import add_dashboard
from api.docs_page import add_docs
from api.feed.places import Places
from api.feed.reader import FeedReader, reader_of
from api.gate import Gate
from api.methods import HeadAsGet
from api.parameters import refuse_unknown
from api.routes import (
    audit,
    checkpoints,
    data_sets,
    devices,
    events,
    health,
    hosts,
    jobs,
    logs,
    metrics,
    plan,
    prometheus,
    quotas,
    recipes,
    secrets,
    telemetry,
    tokens,
    users,
    verbs,
    webhooks,
)
from jobs.access import Access
from jobs.database import get_database
from jobs.logs import configure_logs
from jobs.settings import get_settings
from jobs.store.tokens import SHAPE

_TOKEN_IN_QUERY = re.compile(rf"={SHAPE.pattern}(?=&|$)".encode())


class Application(FastAPI):
    """FastAPI, seen from outside of all that it does by itself, and with a schema that says all."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; a token in its query, where none counts, is in no trace."""
        if scope["type"] == "http":
            scope = dict(scope, query_string=_TOKEN_IN_QUERY.sub(b"=rz_***", scope["query_string"]))
        await super().__call__(scope, receive, send)

    def build_middleware_stack(self) -> ASGIApp:
        """Put around the framework's own layers what its answers to failures have to pass as well."""
        return observing.Observer(AnnouncedLimit(HeadAsGet(super().build_middleware_stack())))

    def openapi(self) -> dict[str, Any]:
        """Return the schema."""
        if self.openapi_schema is None:
            schema.complete(super().openapi())
        assert self.openapi_schema is not None
        return self.openapi_schema


def create_app(access: Access | None = None, *, dashboard: Path = STATIC) -> FastAPI:
    """Return the application; its settings are those of the process (`jobs.settings`).

    `access` counts where the settings name none. Without either it asks for tokens: it cannot know who reaches it.
    `dashboard` is the folder that the dashboard is built into.
    """
    app = Application(
        title="RankZero",
        version=version("rankzero"),
        description="Post a training job with a device list; get rank 0's metrics and checkpoints back.",
        lifespan=_lifespan,
        max_body_size=errors.MAX_BODY_BYTES,
        openapi_tags=schema.TAGS,
        servers=[{"url": "/", "description": "This service."}],
        dependencies=[Depends(refuse_ambiguous), Depends(refuse_unknown)],
        # Its own pages load their scripts from a foreign host.
        docs_url=None,
        redoc_url=None,
        # By the variables of OpenTelemetry, and for nothing where none of them is set.
        telemetry={"auto_configure": True, "exclude": observing.is_probe},
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        responses=errors.DOCUMENTED,
    )
    settings = get_settings()
    app.state.access = settings.access or access or Access.TOKENS
    app.state.feed = FeedReader()
    app.state.places = Places(most=settings.streams, most_of_user=settings.streams_per_user)
    app.add_middleware(Gate, access=app.state.access)
    errors.install(app)
    app.include_router(plan.router)  # before the routes that would take its path for a job's id
    app.include_router(jobs.router)
    app.include_router(metrics.router)
    app.include_router(logs.router)
    app.include_router(verbs.router)
    app.include_router(hosts.router)
    app.include_router(quotas.router)
    app.include_router(webhooks.router)
    app.include_router(telemetry.router)
    app.include_router(data_sets.router)
    app.include_router(recipes.router)
    app.include_router(devices.router)
    app.include_router(checkpoints.router)
    app.include_router(events.router)
    app.include_router(users.router)
    app.include_router(tokens.router)
    app.include_router(secrets.router)
    app.include_router(audit.router)
    app.include_router(health.router)
    app.include_router(prometheus.router)
    add_docs(app)
    add_dashboard(app, dashboard, access=app.state.access)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    configure_logs()
    yield
    await reader_of(app).aclose()
    get_database().dispose()
