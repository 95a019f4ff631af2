"""What monitoring scrapes."""

from typing import Annotated

from fastapi import APIRouter, Header, Response
from prometheus_client.exposition import choose_encoder

from api.access import Viewer
from api.database_figures import DatabaseFigures
from api.figures import REGISTRY

router = APIRouter(tags=["health"])
REGISTRY.register(DatabaseFigures())


@router.get(
    "/metrics",
    summary="Show figures for monitoring",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def scrape_metrics(_: Viewer, accept: Annotated[str, Header(include_in_schema=False)] = "") -> Response:
    """Return figures of the service and of this process, in the text format of Prometheus or that of OpenMetrics."""
    encode, media_type = choose_encoder(accept)
    return Response(encode(REGISTRY), headers={"Content-Type": media_type})
