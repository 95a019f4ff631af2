"""The commands about what can be trained: recipes and their options, data sets."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from rankzero.cli.console import Console
from rankzero.cli.options import Json, Url, connect
from rankzero.cli.output import print_found
from rankzero.cli.tables import table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from rankzero.catalog import DataSet, DataSetSummary, Recipe, RecipeSummary


def add_catalog_commands(app: typer.Typer) -> None:
    """Add these commands to the application."""
    app.command()(recipes)
    app.command("data-sets")(data_sets)


def recipes(
    name: Annotated[str | None, typer.Argument(metavar="RECIPE", help="Show this one, with its options.")] = None,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """List the recipes that hosts have, or show one with its models and options."""
    with connect(url) as client:
        if name is None:
            print_found(client.recipes(), _print_recipes, as_json=as_json)
        else:
            print_found(client.recipe(name), _print_recipe, as_json=as_json)


def data_sets(
    name: Annotated[str | None, typer.Argument(metavar="DATA", help="Show this one, as each host has it.")] = None,
    *,
    as_json: Json = False,
    url: Url = None,
) -> None:
    """List the data sets that jobs can name, or show one as it lies on each host."""
    with connect(url) as client:
        if name is None:
            print_found(client.data_sets(), _print_data_sets, as_json=as_json)
        else:
            print_found(client.data_set(name), _print_data_set, as_json=as_json)


def _print_recipes(console: Console, found: "Sequence[RecipeSummary]") -> None:
    listed = table("RECIPE", "WHAT IT IS", "MODELS", "HOSTS")
    for each in found:
        # Of torchvision's there are eighty.
        models = ", ".join(each.models[:3]) + (f" and {len(each.models) - 3} more" if len(each.models) > 3 else "")
        listed.add_row(*map(escape, (each.name, each.description, models, ", ".join(each.hosts))))
    console.print(listed if found else "no host has told of its recipes yet", highlight=False)


def _print_recipe(console: Console, found: "Recipe") -> None:
    lines = [(found.name, found.description), ("models", ", ".join(found.models) or "none of its own")]
    for variant in found.variants:
        lines.append(("hosts", ", ".join(variant.hosts)))
        options: Mapping[str, Any] = variant.options_schema.get("properties", {})
        lines += [(f"options.{option}", _described(schema)) for option, schema in options.items()]
    for name, text in lines:
        console.print(f"{escape(name)}: {escape(text)}", highlight=False, soft_wrap=True)


def _described(schema: "Mapping[str, Any] | bool") -> str:
    """Return what a schema says of an option; one that takes anything may be `true` alone."""
    if isinstance(schema, bool):
        return ""
    words = " ".join(str(schema.get("description", "")).split())
    return f"{words} Default {schema['default']!r}.".strip() if "default" in schema else words


def _print_data_sets(console: Console, found: "Sequence[DataSetSummary]") -> None:
    listed = table("DATA", "KIND", "SAMPLES", "CLASSES", "HOSTS", "WHAT IT IS")
    for each in found:
        counts = ("" if count is None else str(count) for count in (each.samples, each.classes))
        listed.add_row(
            escape(each.name), each.kind, *counts, escape(", ".join(each.hosts)), escape(each.description or "")
        )
    console.print(listed if found else "no host has told of its data yet", highlight=False)


def _print_data_set(console: Console, found: "DataSet") -> None:
    _print_data_sets(console, [found])
    for lying in found.on:
        sets = ", ".join(f"{name} {counts['samples']} samples" for name, counts in lying.splits.items())
        note = f" ({lying.note})" if lying.note else ""
        console.print(
            escape(f"{lying.path} on {lying.host}: {sets or lying.kind}{note}"), highlight=False, soft_wrap=True
        )
