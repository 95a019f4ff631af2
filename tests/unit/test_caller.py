"""What a script hands to train() is taken into a rank, or refused, by name and with a way out, before a rank starts."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from trainer import train
from trainer.callbacks import Callback, observed
from trainer.caller import Call, call_of, calling, copied, pack, read_call, refuse_call_inside_run, write_call
from trainer.errors import ConfigError
from trainer.journal import Completed, Log, Record
from trainer.reporting import SilentJournal, open_journal
from trainer.run_dir import RunDir


class Remembering(Callback):
    def __init__(self, held: object = None) -> None:
        self.held = held
        self.messages: list[str] = []

    def on_log(self, record: Log) -> None:
        self.messages.append(record.message)


def made_inside_a_function() -> dict[str, Any]:
    class Local(nn.Linear):
        pass

    with_lambda = nn.Linear(2, 2)
    with_lambda.activation = lambda x: x  # type: ignore[assignment]  # a module may hold anything
    return {
        "lambda": lambda _record: None,
        "local class": Local(2, 2),
        "lambda in a model": with_lambda,
        "lock": Remembering(threading.Lock()),
    }


@pytest.mark.parametrize(
    ("kind", "complaints"),
    [
        ("lambda", ("callbacks[1]: the function", "<lambda>", "define it with `def` at the top level")),
        ("lock", ("callbacks[1]: an object of", "Remembering", "'_thread.lock'", "must not hold")),
    ],
)
def test_a_callback_that_cannot_be_pickled_is_named_with_its_type_and_the_way_out(
    kind: str, complaints: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as refused:
        pack(Call(model=None, callbacks=(print, made_inside_a_function()[kind])))

    assert all(complaint in str(refused.value) for complaint in complaints), refused.value


@pytest.mark.parametrize(
    ("kind", "complaints"),
    [
        ("local class", ("model: an object of", "Local", "define the class at the top level")),
        ("lambda in a model", ("model: an object of torch", "<lambda>", "must not hold lambdas")),
    ],
)
def test_a_model_that_cannot_be_pickled_is_named_with_its_type_and_the_way_out(
    kind: str, complaints: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as refused:
        pack(Call(model=made_inside_a_function()[kind], callbacks=()))

    assert all(complaint in str(refused.value) for complaint in complaints), refused.value


@pytest.mark.parametrize(
    ("model", "callbacks", "complaint"),
    [
        (3, (), "model: an object of int is neither"),
        (nn.Linear, (), "model: the class Linear is neither"),
        (nn.DataParallel(nn.Linear(2, 2)), (), "model: a DataParallel is wrapped already; pass its .module"),
        ("resnet18", print, r"callbacks: .* is no list; write callbacks=\["),
        ("resnet18", "print", "callbacks: an object of str is no list"),
        ("resnet18", [print, 3], r"callbacks\[1\]: an object of int cannot be called"),
        ("resnet18", [Remembering], r"callbacks\[0\]: the class Remembering itself; .*Remembering\(\)"),
    ],
)
def test_an_argument_that_is_no_model_or_no_callback_is_refused(
    model: object, callbacks: object, complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        call_of(model, callbacks)


def test_a_name_without_callbacks_is_no_call_that_a_rank_has_to_take_over() -> None:
    assert call_of("resnet18", []) is None


def test_a_model_and_callbacks_of_modules_are_rebuilt_by_a_process_of_its_own_with_shared_weights_still_shared(
    tmp_path: Path,
) -> None:
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    model = nn.Sequential(first, second).eval()
    run_dir = RunDir(tmp_path / "run")
    write_call(run_dir, pack(Call(model, (Remembering("held"), print))))

    rebuilt = in_fresh_process(
        "from trainer.caller import read_call",
        f"call = read_call(RunDir(Path({str(run_dir.path)!r})))",
        "note, printed = call.callbacks",
        "print(type(note).__name__, note.held, printed is print)",
        "print(call.model.training, call.model[0].weight is call.model[1].weight, call.model[0].weight.tolist())",
    )

    assert rebuilt.returncode == 0, rebuilt.stderr
    note, weights = rebuilt.stdout.splitlines()
    assert note == "Remembering held True"
    assert weights == f"False True {first.weight.tolist()}"


def test_a_run_directory_whose_call_is_gone_says_to_start_the_script_again(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"call\.pkl.*start the script again"):
        read_call(RunDir(tmp_path))


def test_classes_of_code_that_no_rank_can_import_are_refused() -> None:
    refused = in_fresh_process(
        "from torch import nn",
        "from trainer.caller import Call, pack",
        "class Net(nn.Module): pass",
        "pack(Call(Net(), ()))",
    )

    assert "model: an object of __main__.Net" in refused.stderr
    assert "Net is defined in a notebook" in refused.stderr


@pytest.mark.parametrize(
    ("top_level", "complaint"),
    [
        ("raise OSError('busy')", "its top level raised OSError: busy"),
        ("import sys; sys.exit(4)", "its top level raised SystemExit: 4"),
        ("refuse_call_during_import('train()')", "calls train() at its top level"),
        (
            "try:\n    refuse_call_during_import('train()')\nexcept Exception:\n    pass",
            "calls train() at its top level",
        ),
        (
            "from trainer.parity import parity\nparity(None, (1, 2), steps=1, tolerance=1e-5)",
            "calls parity() at its top level",
        ),
    ],
    ids=["raises", "exits", "trains", "trains and catches it", "proves parity"],
)
def test_a_script_that_a_rank_cannot_import_is_named_with_what_its_top_level_does(
    top_level: str, complaint: str, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"from trainer.main_module import refuse_call_during_import\n{top_level}\n")

    imported = in_fresh_process(*taking_over(script))

    assert f"ConfigError: {script} " in imported.stderr
    assert complaint in imported.stderr
    assert '`if __name__ == "__main__":`' in imported.stderr


def test_a_rank_finds_what_the_script_defines_and_imports_where_the_script_does(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 7\n")
    script = tmp_path / "script.py"
    script.write_text("import sys, beside\nclass Net: pass\nNAME, ARGUMENTS = __name__, sys.argv\n")

    imported = in_fresh_process(
        *taking_over(script),
        "main = sys.modules['__main__']",
        "print(main.Net.__module__, main.NAME, main.ARGUMENTS, main.beside.VALUE, main is sys.modules['__mp_main__'])",
    )

    assert imported.stdout == f"__mp_main__ __mp_main__ {[str(script), '--fast']} 7 True\n"


def test_a_run_in_the_calling_process_trains_a_copy() -> None:
    model = nn.Linear(2, 2)
    model(torch.ones(2)).sum().backward()

    own = copied(Call(model, (print,)))

    assert own.callbacks == (print,)
    assert own.model is not None
    assert own.model is not model
    assert torch.equal(own.model.weight, model.weight)  # type: ignore[arg-type]  # a Linear's is a tensor
    assert own.model.weight.grad is None
    assert model.weight.grad is not None


def test_a_run_in_the_calling_process_has_its_copy_on_the_cpu_wherever_the_callers_model_is() -> None:
    elsewhere = "cuda" if torch.cuda.is_available() else "meta"  # meta stands in: nothing can be taken to the CPU
    model = nn.Linear(2, 2, device=elsewhere)

    if elsewhere == "meta":
        with pytest.raises(ConfigError, match=r"cannot be copied .*meta tensor"):
            copied(Call(model, ()))
    else:
        own = copied(Call(model, ())).model
        assert own is not None
        assert {weight.device.type for weight in own.parameters()} == {"cpu"}
    assert model.weight.device.type == elsewhere


def test_train_inside_a_run_is_refused() -> None:
    refuse_call_inside_run("train()")
    with calling(Call(None, ())), pytest.raises(ConfigError, match=r"^train\(\) was called inside a run"):
        refuse_call_inside_run("train()")
    refuse_call_inside_run("train()")


def test_callbacks_are_called_with_what_is_journaled_and_only_there(tmp_path: Path) -> None:
    seen: list[Record] = []
    note = Remembering()
    journal = observed(open_journal(RunDir(tmp_path), rank=0), (seen.append, note))
    journal.append(Log, message="one")

    silent = observed(SilentJournal(), (seen.append, note))
    silent.append(Log, message="two")

    assert [record.message for record in seen if isinstance(record, Log)] == ["one"]
    assert note.messages == ["one"]


def test_what_a_callback_raises_ends_the_run_but_not_one_that_is_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def raising(record: Record) -> None:
        raise LookupError(record.kind)

    journal = observed(open_journal(RunDir(tmp_path), rank=0), (raising,))
    with pytest.raises(LookupError, match="log"):
        journal.append(Log, message="one")

    journal.append(Completed, step=1, epoch=1, values={}, best_checkpoint="checkpoints/step-00000001.pt")

    assert "LookupError: completed" in capsys.readouterr().err


def taking_over(script: Path) -> tuple[str, ...]:
    """Code by which a process takes a script over, as a rank does."""
    return (
        "from trainer.main_module import MainModule",
        f"path = {[str(script.parent), *sys.path]!r}",
        f"MainModule(None, {str(script)!r}, tuple(path), ({str(script)!r}, '--fast')).take_over()",
    )


def in_fresh_process(*lines: str) -> subprocess.CompletedProcess[str]:
    code = "\n".join(("import sys", "from pathlib import Path", "from trainer.run_dir import RunDir", *lines))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_a_model_with_parametrizations_is_sent_to_torchrun() -> None:
    model = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(2, 2)))
    with pytest.raises(ConfigError, match=r"(?s)model: .* torch pickles no model with parametrizations.*torchrun"):
        pack(Call(model=model, callbacks=()))


def test_callbacks_that_are_no_list_are_refused_whatever_the_model() -> None:
    for model in ("resnet18", nn.Linear(2, 2)):
        with pytest.raises(ConfigError, match=r"callbacks: .* is no list"):
            train(model=model, data="digits", callbacks=None)  # type: ignore[arg-type]  # the mistake
