"""Weights to begin with: what is read, what of it is taken, and what the user is told."""

import hashlib
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torchvision.models
from torch import nn
from torch.nn import Sequential
from torchvision.models import GoogLeNet, ResNet18_Weights, Weights, WeightsEnum, get_model, get_model_weights

from tests.unit.test_checkpoints import checkpoint
from trainer.checkpoints import CheckpointFolder
from trainer.config import TrainConfig
from trainer.environment import RankEnvironment
from trainer.errors import ConfigError
from trainer.journal import JournalWriter
from trainer.process_group import ProcessGroup
from trainer.recipes.classifiers import build_classifier
from trainer.run_dir import RunConfig, RunDir
from trainer.weights import begin_with, read_weights

ALONE = ProcessGroup.alone(torch.device("cpu"))


def config(chosen: str | Path, *, model: str = "resnet18") -> TrainConfig:
    return TrainConfig(model=model, data="digits", weights=str(chosen))


def network(classes: int, *, seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, classes))


def prefixed(prefix: str, state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {f"{prefix}{name}": value for name, value in state.items()}


def saved(path: Path, payload: object) -> Path:
    torch.save(payload, path)
    return path


def put_into_hub(monkeypatch: pytest.MonkeyPatch, home: Path, url: str, state: dict[str, Any]) -> None:
    """Let torch's cache, in `home`, hold a file as if it had been downloaded from there."""
    monkeypatch.setenv("TORCH_HOME", str(home))
    cached = home / "hub" / "checkpoints" / url.rpartition("/")[2]
    cached.parent.mkdir(parents=True)
    torch.save(state, cached)


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda state: state, id="bare"),
        pytest.param(lambda state: {"state_dict": state, "epoch": 3}, id="state_dict"),
        pytest.param(
            lambda state: {"model_state_dict": state, "optimizer": {"lr": torch.ones(1)}}, id="model_state_dict"
        ),
        pytest.param(lambda state: prefixed("module.", state), id="of DDP"),
        pytest.param(lambda state: {"state_dict": prefixed("model._orig_mod.", state)}, id="compiled"),
        pytest.param(lambda state: {name: value.half() for name, value in state.items()}, id="in half"),
    ],
)
def test_a_state_dict_is_found_however_programs_wrap_it(
    wrap: Callable[[dict[str, torch.Tensor]], object], tmp_path: Path
) -> None:
    theirs, model = network(2, seed=1), network(2, seed=2)
    assert begin_with(model, config(saved(tmp_path / "theirs.pth", wrap(theirs.state_dict()))), ALONE) == ()
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value, rtol=1e-3, atol=1e-3)  # the digits of a half
    assert model.get_parameter("0.weight").dtype is torch.float32


def test_a_checkpoint_of_ours_is_read_as_the_weights_it_hands_out(tmp_path: Path) -> None:
    run_dir = RunDir(tmp_path / "run")
    run_dir.create(RunConfig(train=TrainConfig(model="resnet18", data="digits"), devices=("cpu",)))
    written = checkpoint(1)
    CheckpointFolder(run_dir, JournalWriter(run_dir.journal)).save(written)
    read = read_weights(run_dir.checkpoints / "step-00000001.pt")
    assert read.keys() == written.model.keys()
    assert all(torch.equal(read[name], written.model[name]) for name in read)


def test_a_file_that_was_brought_for_the_run_comes_before_the_one_that_the_config_names(tmp_path: Path) -> None:
    theirs, model = network(2, seed=1), network(2, seed=2)
    brought = saved(tmp_path / "brought.pt", theirs.state_dict())
    assert begin_with(model, config(tmp_path / "not there.pt"), ALONE, brought=brought) == ()
    assert torch.equal(model.get_parameter("2.weight"), theirs.get_parameter("2.weight"))


def test_what_has_another_shape_stays_fresh_and_is_named(tmp_path: Path) -> None:
    theirs, model = network(1000, seed=1), network(2, seed=2)
    head = model.get_parameter("2.weight").clone()
    path = saved(tmp_path / "theirs.pt", theirs.state_dict())
    assert begin_with(model, config(path), ALONE) == (
        f"weights: 7 of 9 tensors are from {path}; 2.weight, 2.bias stay fresh, since it has them in another shape",
    )
    assert torch.equal(model.get_parameter("2.weight"), head)
    assert torch.equal(model.get_parameter("0.weight"), theirs.get_parameter("0.weight"))


def test_a_file_of_a_part_alone_is_taken_for_that_part(tmp_path: Path) -> None:
    theirs, model = network(2, seed=1), network(2, seed=2)
    part = {name: value for name, value in theirs.state_dict().items() if name.startswith("0.")}
    (told,) = begin_with(model, config(saved(tmp_path / "part.pt", part)), ALONE)
    assert told.startswith("weights: 3 of 9 tensors")  # the counter of BatchNorm is nothing that anyone misses
    assert "lacks them" in told
    assert torch.equal(model.get_parameter("0.bias"), theirs.get_parameter("0.bias"))


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (
            {"encoder.weight": torch.ones(2)},
            "nothing in .* fits|nothing in .* it holds encoder.weight; the model has 0.w",
        ),
        ({"1.num_batches_tracked": torch.tensor(3)}, "nothing in "),
        ([1, 2], "holds no tensors by name"),
        ({"epoch": 3}, "holds no tensors by name"),
        ({"model": print}, "is not a readable file of weights"),  # it would have to run code
    ],
)
def test_a_file_with_nothing_for_the_model_is_refused(payload: object, said: str, tmp_path: Path) -> None:
    model = network(2, seed=2)
    path = saved(tmp_path / "other.pt", payload)
    with pytest.raises(ConfigError, match=rf"^weights: .*{said}") as refused:
        begin_with(model, config(path), ALONE)
    assert str(path) in str(refused.value)


UNUSABLE: dict[str, tuple[Callable[[], torch.Tensor], str]] = {
    "meta": (lambda: torch.empty(2, 4, device="meta"), r"has no content \(device meta\)"),
    "sparse": (lambda: torch.ones(2, 4).to_sparse(), r"is not dense \(torch\.sparse_coo\)"),
    "nested": (lambda: torch.nested.nested_tensor([torch.ones(4)] * 2), r"is not dense \(nested\)"),
    "complex": (lambda: torch.ones(2, 4, dtype=torch.complex64), r"is of torch\.complex64"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
@pytest.mark.filterwarnings("ignore:.*(nested tensors|Sparse|sparse):UserWarning")
def test_a_tensor_without_numbers_for_the_model_is_named(kind: str, tmp_path: Path) -> None:
    make, said = UNUSABLE[kind]
    path = saved(tmp_path / "odd.pt", network(2, seed=1).state_dict() | {"2.weight": make()})
    with pytest.raises(ConfigError, match=rf"^weights: 2\.weight of .*odd\.pt {said}; the model has dense torch"):
        begin_with(network(2, seed=2), config(path), ALONE)


@pytest.mark.parametrize("number", [math.nan, 1e300], ids=["nan", "beyond float32"])
def test_numbers_that_are_not_finite_in_the_model_are_named_unless_its_own_are_neither(
    number: float, tmp_path: Path
) -> None:
    weight = torch.ones(2, 4, dtype=torch.float64)
    weight[1, 2] = number
    path = saved(tmp_path / "nan.pt", network(2, seed=1).state_dict() | {"2.weight": weight})
    with pytest.raises(ConfigError, match=r"^weights: not all numbers are finite in 2\.weight of .*nan\.pt"):
        begin_with(network(2, seed=2), config(path), ALONE)
    masked = network(2, seed=2)
    masked.register_buffer("mask", torch.tensor([-math.inf]))
    path = saved(tmp_path / "masked.pt", network(2, seed=1).state_dict() | {"mask": torch.tensor([-math.inf])})
    assert begin_with(masked, config(path), ALONE) == ()


def test_what_is_not_named_by_text_is_no_tensor_of_a_model(tmp_path: Path) -> None:
    state = network(2, seed=1).state_dict()
    assert begin_with(network(2, seed=2), config(saved(tmp_path / "x.pt", {0: torch.ones(2)} | state)), ALONE) == ()
    with pytest.raises(ConfigError, match="holds no tensors by name"):
        read_weights(saved(tmp_path / "y.pt", {0: torch.ones(2)}))


def test_a_damaged_or_missing_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.pt").write_text("no weights")
    for name in ("text.pt", "gone.pt"):
        with pytest.raises(ConfigError, match=rf"^weights: .*{name}"):
            read_weights(tmp_path / name)


def test_default_is_torchvisions_file_from_the_cache_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = get_model("resnet18", weights=None, num_classes=1000)
    put_into_hub(monkeypatch, tmp_path, ResNet18_Weights.DEFAULT.url, theirs.state_dict())
    model = get_model("resnet18", weights=None, num_classes=2)
    (told,) = begin_with(model, config("default"), ALONE)
    assert "fc.weight, fc.bias stay fresh" in told
    assert torch.equal(model.get_parameter("layer4.1.conv2.weight"), theirs.get_parameter("layer4.1.conv2.weight"))


def test_torchvisions_files_for_densenet_are_read_by_the_names_of_their_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = get_model("densenet121", weights=None)
    old = {name.replace(".norm1.", ".norm.1.").replace(".conv2.", ".conv.2."): value for name, value in
           theirs.state_dict().items() if "num_batches" not in name}  # fmt: skip
    put_into_hub(monkeypatch, tmp_path, get_model_weights("densenet121").DEFAULT.url, old)
    assert begin_with(get_model("densenet121", weights=None), config("default", model="densenet121"), ALONE) == ()


@pytest.mark.parametrize("chosen", ["default", "./mine.pt"])
def test_a_googlenet_scales_its_input_as_torchvisions_weights_for_it_expect_and_no_other(chosen: str) -> None:
    model = build_classifier(config(chosen, model="googlenet"), classes=2)
    assert isinstance(model, GoogLeNet)
    assert model.transform_input is (chosen == "default")


def test_weights_that_torchvision_does_not_have_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"^weights: torchvision has no pretrained weights for __main__\.Net; "):
        begin_with(network(2, seed=1), config("default", model="__main__.Net"), ALONE)


def test_without_network_the_file_and_the_place_for_it_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # where nobody listens
    with pytest.raises(ConfigError) as refused:
        begin_with(network(2, seed=1), config("default"), ALONE)
    assert ResNet18_Weights.DEFAULT.url in str(refused.value)
    assert str(tmp_path / "hub" / "checkpoints") in str(refused.value)


class WatchedStore:
    """A store that says when a rank looks for what another is to set."""

    def __init__(self) -> None:
        self.store = dist.HashStore()  # type: ignore[attr-defined]  # exported where torch has distributed
        self.is_asked = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def check(self, names: list[str]) -> bool:
        self.is_asked.set()
        found: bool = self.store.check(names)
        return found


def test_the_first_rank_of_a_host_downloads_and_the_others_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    file = saved(tmp_path / "unnamed", {"fc.bias": torch.full((2,), 7.0)})
    named = tmp_path / f"drawn-{hashlib.sha256(file.read_bytes()).hexdigest()[:8]}.pth"  # which the download checks
    drawn = WeightsEnum("Drawn", {"DEFAULT": Weights(named.as_uri(), Sequential, {})})
    monkeypatch.setattr(torchvision.models, "get_model_weights", lambda _name: drawn)
    store, taken = WatchedStore(), {}

    def take(rank: int) -> None:
        model = nn.ModuleDict({"fc": nn.Linear(3, 2)})
        group = ProcessGroup(RankEnvironment(rank, rank, 2, 2), torch.device("cpu"), store)  # type: ignore[arg-type]  # all it needs of a store
        begin_with(model, config("default"), group)
        taken[rank] = model.get_parameter("fc.bias").tolist()

    second = threading.Thread(target=take, args=(1,))
    second.start()
    assert store.is_asked.wait(20)
    file.rename(named)  # not before: a rank that did not wait would have failed for want of it
    take(0)
    named.unlink()
    second.join(20)
    assert taken == {0: [7.0, 7.0], 1: [7.0, 7.0]}
