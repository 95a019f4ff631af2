"""Query parameters that a route does not take: refused, since a filter whose name is misspelt would let all through."""

from typing import Any

from fastapi import Request

from api.errors import LONGEST_NAME
from jobs.errors import InvalidFilterError


async def refuse_unknown(request: Request) -> None:
    """A dependency of every route: refuse a query parameter that its schema does not name."""
    if not request.query_params:
        return
    known = _known(request.app.openapi(), request.scope["route"].name)
    for name in request.query_params:
        if name not in known:
            listed = f"there are {', '.join(known)}" if known else "this takes none"
            raise InvalidFilterError(name[:LONGEST_NAME], f"there is no such parameter; {listed}")


def _known(schema: dict[str, Any], operation_id: str) -> list[str]:
    operations = (operation for methods in schema["paths"].values() for operation in methods.values())
    for operation in operations:
        if operation["operationId"] == operation_id:
            return [each["name"] for each in operation.get("parameters", []) if each["in"] == "query"]
    return []
