"""A recipe package: the example, installed with pip into an environment of its own, and used by name."""

import json
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.distributed.runs import RUN_S, epochs, start
from trainer.catalog import Catalog
from trainer.run_dir import EXIT_USAGE, RunDir

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "next-byte-recipe"


@dataclass(frozen=True)
class Environment:
    """A virtual environment that sees this one's libraries, and the package on top."""

    python: Path

    def trainer(self, *arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
        return start(str(self.python), "-m", "trainer", *arguments, folder=folder)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=RUN_S)
    variables = {"base": str(folder), "platbase": str(folder)}
    added = Path(sysconfig.get_path("purelib", "venv", vars=variables))
    (added / "these.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT}\n")
    source = added.parents[2] / "source"  # pip builds in the source's folder, and ours is the repository's
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "next_byte.py"):
        (source / name).write_bytes((EXAMPLE / name).read_bytes())
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    subprocess.run([*pip, str(source)], check=True, timeout=RUN_S)
    return Environment(python)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A text in which each word tells the next byte for certain but for its first letter."""
    words = ["alpha", "bravo", "charlie", "delta"]
    for name, count in (("train.txt", 400), ("val.txt", 40)):
        (tmp_path / "corpus").mkdir(exist_ok=True)
        (tmp_path / "corpus" / name).write_text(" ".join(words[(7 * number) % 4] for number in range(count)))
    return tmp_path


def test_an_installed_recipe_is_in_the_catalog_and_trains_by_its_name_on_two_ranks(
    environment: Environment, corpus: Path
) -> None:
    (readme,) = EXAMPLE.joinpath("README.md").read_text().split("```yaml\n")[1:]
    (corpus / "train.yaml").write_text(readme.partition("```")[0])

    listed = environment.trainer("catalog", folder=corpus)
    trained = environment.trainer("train.yaml", "--output", "run", folder=corpus)

    assert listed.returncode == 0, listed.stderr
    (recipe,) = [each for each in Catalog.model_validate_json(listed.stdout).recipes if each.name == "next-byte"]
    assert set(recipe.options_schema["properties"]) == {"context", "width"}
    assert trained.returncode == 0, trained.stderr
    journal = json.loads((corpus / "run" / "journal.jsonl").read_text().splitlines()[0])
    assert (journal["world_size"], journal["batch"]) == (2, 64)
    accuracy = epochs(RunDir(corpus / "run"))[-1].values["val/accuracy"]
    assert accuracy is not None
    assert accuracy > 0.5  # the commonest byte is 1 in 6


def test_an_installed_recipe_trains_the_same_on_one_rank_and_on_two(environment: Environment, corpus: Path) -> None:
    fields = {"recipe": "next-byte", "model": "gru", "data": "./corpus", "device": "cpu", "lr": 0.1, "num_workers": 0}
    (corpus / "train.yaml").write_text(yaml.safe_dump(fields))

    proof = environment.trainer("parity", "train.yaml", "--world-sizes", "1,2", "--steps", "3", folder=corpus)

    assert proof.returncode == 0, proof.stderr
    assert "The same to 1e-05 on 1, 2 ranks." in proof.stdout


def test_without_the_package_its_recipe_is_unknown(corpus: Path) -> None:
    fields = {"recipe": "next-byte", "model": "gru", "data": "./corpus", "device": "cpu"}
    (corpus / "train.yaml").write_text(yaml.safe_dump(fields))

    refused = start(sys.executable, "-m", "trainer", "train.yaml", folder=corpus)

    assert refused.returncode == EXIT_USAGE
    assert "recipe: 'next-byte' is unknown" in refused.stderr
