"""What to say of a field that no spec has: what it is called here, and whether it stands in `train` or beside it."""

from collections.abc import Sequence

from jobs.spec import JobSpec
from trainer.config import TrainConfig
from trainer.names import called_elsewhere, meant

NO_SUCH_FIELD = "there is no such field"

_SPEC = tuple(JobSpec.model_fields)
_TRAIN = tuple(TrainConfig.model_fields)


def describe_unknown(path: Sequence[str]) -> str:
    """Return what is wrong with a field of this path in a spec, and which one it may stand for."""
    match path:
        case [name]:
            own, others, place = _SPEC, _TRAIN, "in `train`"
        case ["train", name]:
            own, others, place = _TRAIN, _SPEC, "beside `train`"
        case _:
            return NO_SUCH_FIELD
    for misplaced in (name, called_elsewhere(name)):
        if misplaced in others:
            return f"{NO_SUCH_FIELD}; `{misplaced}` stands {place}"
    near = meant(name, own)
    return f"{NO_SUCH_FIELD}; did you mean {near}?" if near in own else NO_SUCH_FIELD
