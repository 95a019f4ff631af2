"""The check of a spec against what hosts have published."""

import pytest

from jobs.catalogs import Catalog, DataSet, Recipe, check
from jobs.errors import InvalidSpecError
from jobs.spec import JobSpec

CATALOG = Catalog(
    recipes=(
        Recipe(name="classification", models=("resnet18", "resnet34")),
        Recipe(name="segmentation", models=("fcn_resnet50",)),
    ),
    data=(DataSet(name="digits"),),
)


def test_a_model_of_another_recipe_is_refused_as_that_and_not_as_unknown() -> None:
    train = {"recipe": "segmentation", "model": "resnet18", "data": "digits"}
    with pytest.raises(InvalidSpecError) as raised:
        check(JobSpec.model_validate({"train": train}), [CATALOG])
    assert raised.value.field == "train.model"
    told = "recipe segmentation has no model 'resnet18', which is one of classification; try fcn_resnet50"
    assert raised.value.message == told
