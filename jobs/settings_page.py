"""docs/settings.md, made from the settings themselves: `python -m jobs.settings_page > docs/settings.md`."""

import sys

from pydantic_core import PydanticUndefined

from jobs.settings import Settings

HEAD = """\
# Settings

API, worker and supervisor read the same settings from the environment, once, when they start. `rankzero up` sets them
by itself. This page is made from `jobs/settings.py`: `python -m jobs.settings_page > docs/settings.md`.

| variable | default | meaning |
|---|---|---|
"""


def render() -> str:
    """Return the page: a row for each setting, with its docstring and default."""
    prefix = Settings.model_config["env_prefix"]
    return HEAD + "".join(
        f"| `{prefix}{name.upper()}` | {_default(field.default)} | {_in_a_cell(field.description or '')} |\n"
        for name, field in Settings.model_fields.items()
    )


def _default(value: object) -> str:
    if value is PydanticUndefined:
        return "the machine's name"
    return "none" if value is None else f"`{value}`"


def _in_a_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(render())
