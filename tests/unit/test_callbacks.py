"""Callbacks: a method that no event would call is refused where it is defined."""

import pytest

from trainer import Callback
from trainer.errors import ConfigError
from trainer.journal import EpochEnd


def test_a_mistyped_method_of_a_callback_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(ConfigError) as refused:

        class Noting(Callback):
            def on_epoch_ended(self, record: EpochEnd) -> None: ...

    assert str(refused.value).endswith(
        "Noting.on_epoch_ended would never be called: there is on_started, on_metrics, on_checkpoint, on_log, "
        "on_epoch_end, on_completed; did you mean on_epoch_end?"
    )


def test_what_is_no_method_and_what_another_base_calls_is_a_callbacks_own_affair() -> None:
    class Other:
        def on_train_begin(self) -> None: ...

    class Both(Other, Callback):
        on_gpu = False

        def on_epoch_end(self, record: EpochEnd) -> None: ...

    assert isinstance(Both(), Callback)
