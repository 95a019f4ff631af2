"""Names that users type: which known one a mistyped name may have meant."""

from collections.abc import Sequence
from difflib import get_close_matches


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the end of an error message about an unknown name: the nearest known ones, or where to find all."""
    close = get_close_matches(name.lower(), known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else "`python -m trainer catalog` lists what there is"
