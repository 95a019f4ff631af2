"""What to train: the frozen, torch-free configuration of one training run."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, JsonValue, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from trainer.option_model import OptionModel

Name = Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[^\x00]*$")]
_NameOrEmpty = Annotated[str, Field(max_length=1024, pattern=r"^[^\x00]*$")]

SCRIPT = "script"
"""The recipe that runs the user's own program (trainer.script)."""
AUTO_BATCH = -1
"""The `batch` that asks for the largest one that fits."""
DEFAULT_WEIGHTS = "default"
"""The `weights` that are torchvision's, and no path."""

_OF_SCRIPTS = frozenset({"recipe", "model", "data", "options"})


def _refuse_zero(batch: int) -> int:
    if batch == 0:
        raise ValueError("a batch has 1 sample or more; -1 takes as many as fit")
    return batch


Batch = Annotated[
    int,
    Field(ge=AUTO_BATCH, le=1_000_000, json_schema_extra={"not": {"const": 0}}),
    AfterValidator(_refuse_zero),
]


class TrainConfig(OptionModel):
    """One training run, whatever the devices: two runs of one config on other device lists train the same model."""

    recipe: Name = "classification"
    """How to build model, data, loss and metrics. `python -m trainer catalog` lists the recipes of a host."""
    model: _NameOrEmpty = Field(default="", validate_default=True)
    """A model of the recipe's registry: for `classification`, one of torchvision's classifiers such as `resnet50`.
    To be given, but for `script`, which takes none."""
    data: _NameOrEmpty = Field(default="", validate_default=True)
    """A data set known by name (`cifar10`, `cifar100`, `mnist`, `fashion_mnist`, `digits`, `synthetic`) or the path of
    a folder on the host that trains. To be given, but for `script`, which takes none."""
    options: dict[Name, JsonValue] = Field(default={})
    """The recipe's own options, by name. `python -m trainer catalog` lists them."""
    epochs: int = Field(default=10, ge=1, le=1_000_000)
    """Passes over the training set."""
    batch: Batch = 64
    """Global batch in samples: what one forward pass sees over all ranks together, however many there are, and, without
    `nbs`, one optimizer step. It must divide by the number of ranks. -1: as many as fit into the first device's memory,
    times the number of ranks; on the CPU, 16 for each rank."""
    nbs: int | None = Field(default=None, ge=1, le=1_000_000)
    """Nominal batch size in samples: gradients of round(nbs / batch) batches are accumulated for one optimizer step,
    which weighs each of their samples once, also where the epoch's last group of batches is short. With `batch` -1 it
    is also the largest batch that is taken."""
    lr: float = Field(default=0.1, gt=0, le=1e6)
    """The highest learning rate of the run, for the global batch; `schedule` and `warmup_epochs` say what becomes of
    it."""
    optimizer: Literal["sgd", "adamw"] = "sgd"
    """`sgd` (with `momentum`) or `adamw`."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    """Momentum of `sgd`; without effect on `adamw`."""
    weight_decay: float = Field(default=5e-4, ge=0, le=1e6)
    """Weight decay, on every parameter."""
    schedule: Literal["constant", "cosine", "linear", "step", "one_cycle"] = "cosine"
    """Learning rate over the steps after the warm-up: `constant`; `cosine` or `linear` from `lr` down to 0 at the last
    step; `step`, times `step_gamma` after every `step_epochs` epochs; `one_cycle`, up to `lr` over the first 30 % of
    the steps and down to nearly 0 over the rest."""
    warmup_epochs: float = Field(default=0, ge=0)
    """Epochs over which the learning rate first rises from near 0 to where the schedule begins, a little at each step;
    that is at `lr`, but for `one_cycle`, which begins at a twenty-fifth of it."""
    step_epochs: int = Field(default=30, ge=1)
    """With schedule `step`, epochs between two drops of the learning rate."""
    step_gamma: float = Field(default=0.1, gt=0, le=1)
    """With schedule `step`, the factor of each drop."""
    clip_norm: float | None = Field(default=None, gt=0)
    """Largest norm of all gradients together; a step with a larger one is scaled down to it."""
    patience: int | None = Field(default=None, ge=1)
    """End early after this many epochs in a row in which the recipe's best metric was not bettered; an equal one does
    not count as better, whatever its loss."""
    weights: Name | None = None
    """Weights to begin with: `default` for torchvision's pretrained ones (downloaded once to the host's cache), or the
    path of a file of weights or of a checkpoint; what has another shape there, such as the last layer, stays fresh."""
    freeze: tuple[Name, ...] = ()
    """Parts of the model that are not trained, by the name of their module or parameter (`layer1`, `features.0`); the
    statistics of BatchNorm in such a module stay as they are."""
    ema: float | None = Field(default=None, gt=0, lt=1)
    """Decay of an exponential moving average of the weights, such as 0.999, taken after each optimizer step; validation
    and the checkpoint's `model` are then the average's. In update n it is (1 + n) / (10 + n) where that is less."""
    sync_bn: bool | None = None
    """Whether BatchNorm normalises over the global batch instead of each rank's share; left out, the recipe decides
    (on, for `classification`, `segmentation` and `detection`). Without it, a model with BatchNorm depends on the number
    of ranks. Without effect on one rank."""
    strategy: Literal["ddp", "dp", "single"] = "ddp"
    """How several devices share the work: `ddp`, a process for each (DistributedDataParallel); `dp`, one process that
    splits each batch among them (DataParallel, slower); `single` refuses more than one device."""
    amp: Literal["fp16", "bf16"] | None = None
    """Automatic mixed precision of forward and loss; the weights stay fp32. With `fp16` the loss is scaled so that
    small gradients survive, and a step whose gradients overflow is skipped and counted (`train/skipped_steps`)."""
    channels_last: bool = False
    """Keep images and convolutions in the memory format NHWC, which tensor cores prefer."""
    compile: bool = False
    """Compile the model with `torch.compile`: a slower start, faster steps."""
    cuda_graph: bool = False
    """Capture the training step in a CUDA graph and replay it: for small models on one CUDA device. Elsewhere, and
    among several ranks, training goes on without, and the log says so."""
    profile: bool = False
    """Write a trace of a few steps of the first epoch (torch.profiler, for chrome://tracing or Perfetto) into the run
    directory's `profile` folder; on one rank only."""
    image_size: int = Field(default=224, ge=8, le=4096)
    """Height and width, in pixels, that every image is resized to."""
    augment: tuple[Literal["random_crop", "horizontal_flip"], ...] = ()
    """Random changes to training images: `random_crop` (out of the image padded by an eighth of its size, mirrored) and
    `horizontal_flip`. What becomes of an image depends on seed, epoch and image, not on the device list."""
    dropout: float | None = Field(default=None, ge=0, lt=1)
    """Probability of every dropout layer of the model; left out, each model's own. Dropout draws differ from rank to
    rank: with 0, which also turns stochastic depth off, runs on different device lists agree to rounding."""
    on_bad_image: Literal["fail", "skip"] = "fail"
    """What becomes of image files that cannot be read, which are looked for before training: `fail` names them and
    trains nothing (with no cache, damage in the midst of a file ends the run where it is read); `skip` leaves them out,
    on all ranks alike, with a warning."""
    cache_gb: float = Field(default=4, ge=0)
    """Largest size, in 10^9 bytes, of the cache in which the ranks of a host keep each decoded image, a file that the
    memory is not charged for; a set that does not fit is decoded anew in each epoch. 0 keeps none."""
    val_fraction: float = Field(default=0.1, gt=0, lt=1)
    """Share of the images kept for validation where an image folder has no `train` and `val` folders of its own."""
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    """Seed of the initial weights, the order of samples, augmentation and all else that is random."""
    num_workers: int = Field(default=2, ge=0, le=256)
    """Loader processes for each rank; 0 loads in the rank itself."""
    prefetch: int = Field(default=2, ge=1, le=64)
    """Batches that each loader process prepares ahead."""
    log_every: int = Field(default=10, ge=1)
    """Steps between two metric records."""
    save_every: int | None = Field(default=None, ge=1)
    """Steps between two checkpoints inside an epoch; there is one at each epoch's end in any case."""
    resume: Name | None = None
    """Path of a checkpoint to continue from, on the host that trains."""
    timeout_s: float = Field(default=10_800, ge=1, le=2_592_000)
    """Longest wait in one collective before a rank gives up, in seconds; long, since a rank may be compiling."""

    @field_validator("model", "data")
    @classmethod
    def _as_the_recipe_needs(cls, value: str, info: ValidationInfo) -> str:
        recipe = info.data.get("recipe")
        if recipe == SCRIPT and value:
            raise PydanticCustomError("not_of_scripts", "recipe script takes none; what it trains is the script's own")
        if recipe not in (SCRIPT, None) and not value:
            raise PydanticCustomError("missing", "has to be given")
        return value

    @field_validator("*")
    @classmethod
    def _refuse_what_a_script_ignores(cls, value: Any, info: ValidationInfo) -> Any:
        name = str(info.field_name)
        is_left_out = name in _OF_SCRIPTS or value == cls.model_fields[name].default
        if info.data.get("recipe") == SCRIPT and not is_left_out:
            raise PydanticCustomError("not_of_scripts", "recipe script takes none; hand it over in options.args")
        return value

    @field_validator("augment")
    @classmethod
    def _refuse_repeats(cls, augment: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(augment)) < len(augment):
            raise ValueError("each change is named once")
        return augment
