"""JSON merge patches (RFC 7396): changes to a JSON document, in the form of the document itself."""

from typing import Any


def merged(target: Any, patch: Any) -> Any:
    """Return `target` with `patch` laid over it: objects are merged field by field, null takes a field out, and all
    else replaces what was there. Neither argument is changed."""
    if not isinstance(patch, dict):
        return patch
    fields = dict(target) if isinstance(target, dict) else {}
    for name, change in patch.items():
        if change is None:
            fields.pop(name, None)
        else:
            fields[name] = merged(fields.get(name), change)
    return fields
