"""Recipes: what the hosts can train, and with which options."""

from typing import Annotated

from fastapi import APIRouter, Path

from api.access import Viewer
from api.recipes import Recipe, Recipes, RecipeSummary
from api.session import reading
from jobs.store import recipes

router = APIRouter(prefix="/recipes", tags=["recipes"])

RecipeName = Annotated[str, Path(max_length=255, pattern=r"^[^\x00]*$", description="Name of the recipe.")]


@router.get("", summary="List recipes")
def list_recipes(_: Viewer) -> Recipes:
    """Return every recipe that some host has, with its models, by name."""
    with reading() as session:
        return Recipes(items=[RecipeSummary.model_validate(offer) for offer in recipes.offers(session)])


@router.get("/{name}", summary="Show a recipe")
def get_recipe(name: RecipeName, _: Viewer) -> Recipe:
    """Return one recipe with the JSON schema of its options, as each release of it that hosts have knows them."""
    with reading() as session:
        return Recipe.model_validate(recipes.get(session, name))
