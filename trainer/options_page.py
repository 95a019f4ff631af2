"""docs/training-options.md, made from the options' own docstrings.

`python -m trainer.options_page > docs/training-options.md`
"""

import ast
import dataclasses
import inspect
import sys
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

from trainer.config import TrainConfig
from trainer.devices import MOST_PROCESSES
from trainer.run_dir import RunConfig
from trainer.train_file import TrainFile

HEAD = """\
# Training options

What a `train.yaml` may hold, and what `train()` takes as keywords; the `train` of a job holds the fields of the second
table. [Training](training.md) says how they work together. This page is made from `trainer/config.py` and
`trainer/train_file.py`: `python -m trainer.options_page > docs/training-options.md`.
"""
_TABLE = "| option | values | default | meaning |\n|---|---|---|---|\n"


def render() -> str:
    """Return the page: a row for each option, with what it may be, its default and its docstring."""
    train = TrainConfig.model_json_schema()
    return (
        f"{HEAD}\n## Where\n\n{_TABLE}{''.join(_launch_rows())}"
        f"\n## What\n\n{_TABLE}{''.join(_row(name, schema) for name, schema in train['properties'].items())}"
    )


def _launch_rows() -> Iterator[str]:
    """A row for each field of TrainFile beside `train`; a dataclass keeps no docstrings, so its source has to tell."""
    run = RunConfig.model_json_schema()["properties"]
    said = _attribute_docstrings(TrainFile)
    for field in dataclasses.fields(TrainFile):
        if field.name == "train":
            continue
        known = run.get(field.name, {})
        processes = {"type": "integer", "minimum": 1, "maximum": MOST_PROCESSES}
        schema = processes if field.name == "nproc_per_node" else known
        described = {"description": said.get(field.name, known.get("description", "")), "default": field.default}
        yield _row(field.name, schema | described)


def _attribute_docstrings(cls: type) -> dict[str, str]:
    """Return the string below each attribute of a class."""
    body = ast.parse(dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        attribute.target.id: below.value.value
        for attribute, below in zip(body.body, body.body[1:], strict=False)
        if isinstance(attribute, ast.AnnAssign)
        and isinstance(attribute.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def _row(name: str, schema: dict[str, Any]) -> str:
    cells = (f"`{name}`", _values(schema), _default(schema), schema["description"])
    return f"| {' | '.join(_in_a_cell(cell) for cell in cells)} |\n"


def _values(schema: dict[str, Any]) -> str:
    """Say what a JSON schema allows."""
    if "anyOf" in schema:
        return _values(next(way for way in schema["anyOf"] if way.get("type") != "null"))
    if choices := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return " or ".join(f"`{choice}`" for choice in choices)
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_values(schema['items'])}"
    if kind in ("integer", "number"):
        return f"{'whole number' if kind == 'integer' else 'number'} {_range(schema)}".strip()
    return {"boolean": "`true` or `false`", "string": "text", "object": "names with values"}.get(
        str(kind), "see [training](training.md#devices)"
    )


def _range(schema: dict[str, Any]) -> str:
    bounds = (
        ("minimum", "from"),
        ("exclusiveMinimum", "above"),
        ("maximum", "to"),
        ("exclusiveMaximum", "below"),
    )
    said = " ".join(f"{word} {_number(schema[bound])}" for bound, word in bounds if bound in schema)
    return f"{said}, but not {schema['not']['const']}" if "not" in schema else said


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:g}"


def _default(schema: dict[str, Any]) -> str:
    if "default" not in schema or schema["default"] is dataclasses.MISSING:
        return "to be given"
    value = schema["default"]
    if value == "":
        return "to be given"
    if value is None or value in ([], {}):
        return "none"
    return f"`{str(value).lower()}`" if isinstance(value, bool) else f"`{value}`"  # as YAML has it


def _in_a_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(render())
