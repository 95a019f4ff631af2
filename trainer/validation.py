"""What is wrong with a configuration, in one line for people."""

from pydantic import ValidationError


def describe(error: ValidationError) -> str:
    """Name each field in error, what is wrong with it, and what was given."""
    return "; ".join(
        f"{'.'.join(map(str, part['loc'])) or 'the whole'}: {part['msg']} (got {part['input']!r:.100})"
        for part in error.errors(include_url=False)
    )
