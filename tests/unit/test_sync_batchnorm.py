"""What the conversion to synchronised BatchNorm changes in a model, and what it leaves alone."""

import copy
import pickle

import pytest
import torch
import torchvision.models
from torch import nn

from trainer.errors import ConfigError
from trainer.sync_batchnorm import SynchronizedBatchNorm, count_batch, has_batchnorm, synchronize_batchnorm

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


class OtherDefaults(nn.BatchNorm2d):
    """What users write to have other defaults."""

    def __init__(self, features: int) -> None:
        super().__init__(features, eps=1e-3, momentum=0.01)


class WithActivation(nn.BatchNorm2d):
    """A layer that does more than BatchNorm."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002  (torch's name for it)
        return super().forward(input).relu()


def synchronized(model: nn.Module) -> nn.Module:
    return synchronize_batchnorm(model, device=CPU, has_idle_ranks=False)


def test_models_with_and_without_batchnorm_are_told_apart() -> None:
    assert has_batchnorm(torchvision.models.resnet18())
    assert not has_batchnorm(nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2), nn.InstanceNorm2d(2, affine=True)))


def test_names_parameters_buffers_and_their_values_stay() -> None:
    model = torchvision.models.resnet18()
    state, parameters = copy.deepcopy(model.state_dict()), dict(model.named_parameters())
    converted = synchronized(model)
    assert converted.state_dict().keys() == state.keys()
    assert all(torch.equal(value, state[name]) for name, value in converted.state_dict().items())
    assert all(parameter is parameters[name] for name, parameter in converted.named_parameters())
    kinds = [type(layer) for layer in converted.modules() if isinstance(layer, nn.BatchNorm2d)]
    assert len(kinds) == 20
    assert all(issubclass(kind, SynchronizedBatchNorm) for kind in kinds)


@pytest.mark.parametrize("training", [True, False])
def test_without_a_process_group_a_converted_layer_is_batchnorm(training: bool) -> None:
    layer, values = nn.BatchNorm2d(2).train(training), torch.randn(3, 2, 4, 4)
    converted = synchronized(copy.deepcopy(layer))
    assert torch.equal(converted(values), layer(values))
    assert all(torch.equal(value, layer.state_dict()[name]) for name, value in converted.state_dict().items())


@pytest.mark.parametrize("kind", [nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm, OtherDefaults])
def test_a_converted_layer_can_be_copied_and_keeps_its_options(kind: type[nn.Module]) -> None:
    layer = kind(2)
    text = str(layer)
    converted = copy.deepcopy(synchronized(layer))
    assert isinstance(converted, SynchronizedBatchNorm)
    assert str(converted).partition("(")[2] == text.partition("(")[2]
    assert converted is synchronized(converted)
    assert not isinstance(converted, nn.SyncBatchNorm)  # DistributedDataParallel refuses that one on the CPU
    if kind is not OtherDefaults:
        pickle.loads(pickle.dumps(converted))  # noqa: S301  # our own


def test_a_layer_in_two_places_stays_one_layer() -> None:
    layer = nn.BatchNorm1d(2)
    first, second = nn.Sequential(layer), nn.Sequential(layer)
    synchronized(nn.Sequential(first, second))
    assert first[0] is second[0] is layer
    assert isinstance(layer, SynchronizedBatchNorm)


def test_layers_that_are_no_batchnorm_stay_as_they_are() -> None:
    layers = [nn.InstanceNorm2d(2, affine=True, track_running_stats=True), nn.LayerNorm(2), nn.GroupNorm(1, 2)]
    kinds = [type(layer) for layer in layers]
    assert [type(layer) for layer in synchronized(nn.Sequential(*layers)).children()] == kinds


@pytest.mark.parametrize("device", [CPU, CUDA])
@pytest.mark.parametrize(
    ("layer", "named"), [(nn.LazyBatchNorm2d(), "LazyBatchNorm2d"), (WithActivation(2), "WithAct")]
)
def test_a_layer_that_cannot_be_converted_is_named(layer: nn.Module, named: str, device: torch.device) -> None:
    model = nn.Sequential(nn.Identity(), layer)
    with pytest.raises(ConfigError, match=rf"sync_bn: the layer '1' is a {named}.*sync_bn to false"):
        synchronize_batchnorm(model, device=device, has_idle_ranks=False)


def test_a_lazy_layer_that_has_seen_its_input_is_converted() -> None:
    layer = nn.LazyBatchNorm1d()
    layer(torch.randn(3, 2))
    assert isinstance(synchronized(layer), SynchronizedBatchNorm)


def test_inputs_of_the_wrong_shape_are_refused_as_before() -> None:
    with pytest.raises(ValueError, match="expected 4D input"):
        synchronized(nn.BatchNorm2d(2))(torch.randn(3, 2))


def test_on_cuda_torch_s_own_layers_are_taken_unless_some_rank_only_repeats_a_sample() -> None:
    keys = torchvision.models.resnet18().state_dict().keys()
    own = synchronize_batchnorm(torchvision.models.resnet18(), device=CUDA, has_idle_ranks=False)
    ours = synchronize_batchnorm(torchvision.models.resnet18(), device=CUDA, has_idle_ranks=True)
    assert [type(own.bn1), type(ours.bn1).__bases__[0]] == [nn.SyncBatchNorm, SynchronizedBatchNorm]
    assert own.state_dict().keys() == ours.state_dict().keys() == keys


def test_a_batch_is_counted_until_it_is_said_not_to_be() -> None:
    model = synchronized(nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm1d(2)))
    layers = [layer for layer in model.modules() if isinstance(layer, SynchronizedBatchNorm)]
    assert [layer.counted for layer in layers] == [True, True]
    count_batch(model, False)
    assert [layer.counted for layer in layers] == [False, False]
    count_batch(model, True)
    assert [layer.counted for layer in layers] == [True, True]
