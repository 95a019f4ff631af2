"""Files of others run no code here: checkpoints are opened with `weights_only=True`, and pickles only where ours.

What the code says is held to that, so that no later line forgets it.
"""

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from rankzero.cli import spec_file
from trainer.checkpoints import load_checkpoint
from trainer.errors import TrainingError
from trainer.weights import read_weights

ROOT = Path(__file__).parents[2]
FOLDERS = ("api", "benchmarks", "examples", "jobs", "migrations", "rankzero", "trainer", "worker")
SOURCES = sorted(
    path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py") if "node_modules" not in path.parts
)

OWN_CALL = Path("trainer/caller.py")
"""Reads the `call.pkl` that the same user's `train()` has written for this very run."""
CIFAR = Path("trainer/data/cifar.py")
"""Reads pickles by an unpickler of its own, which makes bytes and nothing else."""
SPEC = Path("rankzero/cli/spec_file.py")
"""Reads YAML by a loader of its own, which is PyYAML's safe one but for how it reads numbers."""

RUN_CODE = {
    *("pickle.load", "pickle.loads", "pickle.Unpickler", "marshal.load", "marshal.loads", "shelve.open"),
    *("joblib.load", "dill.load", "dill.loads", "cloudpickle.load", "cloudpickle.loads", "torch.jit.load"),
    *("torch.package.PackageImporter", "torch.hub.load", "yaml.load", "yaml.unsafe_load", "yaml.full_load"),
}
"""What runs, or may run, code that is in the file it reads."""


def used_names(tree: ast.AST) -> Iterator[str]:
    """Every dotted name that a module uses, by what it imported it as."""
    imported: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {each.asname or each.name.partition(".")[0]: each.name for each in node.names if each.asname}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            yield f"{imported.get(first, first)}.{rest}"


def loads(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name:
            yield node


def imported_from(tree: ast.AST, module: str) -> set[str]:
    found = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == module)
    return {each.name for node in found for each in node.names}


def keyword(call: ast.Call, name: str) -> object:
    return next((ast.literal_eval(each.value) for each in call.keywords if each.arg == name), None)


def module_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", SOURCES, ids=module_name)
def test_no_module_opens_a_file_in_a_way_that_runs_what_is_in_it(path: Path) -> None:
    tree, place = ast.parse(path.read_text()), path.relative_to(ROOT)
    allowed = {OWN_CALL: {"pickle.loads"}, CIFAR: {"pickle.Unpickler"}, SPEC: {"yaml.load"}}.get(place, set())
    assert (set(used_names(tree)) & RUN_CODE) - allowed == set()
    if place != OWN_CALL:
        assert [call.lineno for call in loads(tree, "torch.load") if keyword(call, "weights_only") is not True] == []
        assert "load" not in imported_from(tree, "torch")  # by its bare name it would be called unseen
    assert [call.lineno for call in loads(tree, "np.load") if keyword(call, "allow_pickle") is True] == []


def test_the_loader_of_our_own_makes_what_the_safe_one_makes() -> None:
    assert issubclass(spec_file._Loader, yaml.SafeLoader)
    assert spec_file._Loader.yaml_constructors == yaml.SafeLoader.yaml_constructors
    (call,) = loads(ast.parse((ROOT / SPEC).read_text()), "yaml.load")
    assert [ast.unparse(each.value) for each in call.keywords] == ["_Loader"]


def test_the_search_finds_what_it_is_for() -> None:
    """A search that finds nothing would pass for ever."""
    caller, cifar = (ast.parse((ROOT / place).read_text()) for place in (OWN_CALL, CIFAR))
    assert "pickle.loads" in set(used_names(caller))
    assert "pickle.Unpickler" in set(used_names(cifar))
    assert [keyword(call, "weights_only") for call in loads(caller, "torch.load")] == [False]
    checkpoints = ast.parse((ROOT / "trainer" / "checkpoints.py").read_text())
    assert [keyword(call, "weights_only") for call in loads(checkpoints, "torch.load")] == [True]
    smuggled = ast.parse("from pickle import loads as read\nimport marshal as m\nm.loads(b'')")
    assert {"pickle.loads", "marshal.loads"} <= set(used_names(smuggled))


class Evil:
    """An object that makes a folder as it is read."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.made),)


@pytest.mark.parametrize("read", [load_checkpoint, read_weights])
def test_a_checkpoint_and_a_file_of_weights_with_code_in_them_are_refused_and_run_none(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    torch.save(
        {"format": 3, "model": {"weight": torch.zeros(1)}, "more": Evil(tmp_path / "made")}, tmp_path / "last.pt"
    )
    with pytest.raises(TrainingError, match="not a readable"):
        read(tmp_path / "last.pt")
    assert not (tmp_path / "made").exists()
