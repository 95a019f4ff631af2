"""Data sets: what jobs can name as their data, and what lies there."""

from typing import Annotated

from fastapi import APIRouter, Path

from api.access import Viewer
from api.data_sets import DataSet, DataSets, DataSetSummary
from api.session import reading
from jobs.store import data_sets

router = APIRouter(prefix="/data-sets", tags=["data sets"])

DataSetName = Annotated[
    str, Path(max_length=1024, pattern=r"^[^\x00]*$", description="Name of the data set: `digits`, `photos:june`.")
]


@router.get("", summary="List data sets")
def list_data_sets(_: Viewer) -> DataSets:
    """Return every data set that trainers know by name or that lies in a data root of a host, by name."""
    with reading() as session:
        return DataSets(items=[DataSetSummary.model_validate(offer) for offer in data_sets.offers(session)])


@router.get("/{name}", summary="Show a data set")
def get_data_set(name: DataSetName, _: Viewer) -> DataSet:
    """Return one data set with its counts by set and class and a few samples, as each host that has it has found it."""
    with reading() as session:
        return DataSet.model_validate(data_sets.get(session, name))
