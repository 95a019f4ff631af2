"""Roots: what their settings mean, what a job needs of them, and what a host's supervisor lets a run read and start."""

from pathlib import Path
from typing import Any

import pytest

from jobs.roots import Needs, Program, Roots, needs_of, parse_code_roots, parse_data_roots
from jobs.settings import Settings
from trainer.config import TrainConfig
from trainer.errors import ConfigError, DataError
from worker.roots import permitted


def training(data: str, **fields: Any) -> TrainConfig:
    return TrainConfig.model_validate({"model": "resnet18", "data": data, **fields})


def program(**options: Any) -> TrainConfig:
    return TrainConfig.model_validate({"recipe": "script", "options": options})


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Two folders that may be roots, and one that is none, which a link in each of them leads to."""
    for name in ("photos/june", "code", "elsewhere", "runs"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("code/train.py", "elsewhere/train.py"):
        (tmp_path / name).write_text("print('trains')\n")
    (tmp_path / "photos" / "out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "code" / "out.py").symlink_to(tmp_path / "elsewhere" / "train.py")
    return tmp_path


def settings(disk: Path, **values: Any) -> Settings:
    return Settings(data_roots=f"photos={disk / 'photos'}", run_root=disk / "runs", **values)


def test_roots_are_read_as_pairs_of_name_and_path_and_as_paths() -> None:
    assert parse_data_roots(" photos = /data/photos/ , maps=/srv/../srv/maps,") == {
        "photos": "/data/photos",
        "maps": "/srv/maps",
    }
    assert parse_code_roots("/srv/code/, /home") == ("/srv/code", "/home")
    assert (parse_data_roots(""), parse_code_roots("")) == ({}, ())


@pytest.mark.parametrize(
    "text", ["/data", "photos", "photos=", "photos=data", "a/b=/data", "a:b=/data", "=/data", "x=/a,x=/b", "..=/data"]
)
def test_what_names_no_folder_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"name=/path|absolute path|twice"):
        parse_data_roots(text)


@pytest.mark.parametrize(
    ("data", "needed"),
    [
        ("digits", None),  # a trainer's own, whatever an operator has called a folder
        ("digits:", "digits:"),
        ("photos", "photos:"),
        ("photos:june", "photos:june"),
        ("unheard", None),
        ("unheard:of", "unheard:of"),
        ("/data/photos", "/data/photos"),
        ("./photos", "./photos"),
    ],
)
def test_data_by_the_name_of_a_root_or_by_a_path_needs_a_host_that_allows_it(data: str, needed: str | None) -> None:
    needs = needs_of(training(data), known=frozenset({"digits"}), roots=frozenset({"digits", "photos"}))
    assert (needs and needs.data) == needed


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("photos:june", None),
        ("/data/photos", None),
        ("/data/photos/june", None),
        ("/data/photos/../photos/june", None),
        ("/data/photos/../secrets", "reads data from its roots only (photos: /data/photos)"),
        ("/data/photoshop", "reads data from its roots only (photos: /data/photos)"),
        ("./photos", "reads data from its roots only (photos: /data/photos)"),
        ("maps:", "has no data root 'maps'"),
    ],
)
def test_a_host_with_data_roots_takes_no_other_data(data: str, why: str | None) -> None:
    assert Roots(data={"photos": "/data/photos"}).why_not(Needs(data=data)) == why


def test_a_host_without_data_roots_takes_any_path_and_no_name() -> None:
    assert Roots().why_not(Needs(data="/anywhere")) is None
    assert Roots().why_not(Needs(data="photos:")) == "has no data root 'photos'"


@pytest.mark.parametrize(
    ("roots", "asked", "why"),
    [
        (Roots(), Program(script="/a.py"), "runs no scripts"),
        (Roots(scripts=True), Program(script="/a.py"), None),
        (Roots(scripts=True, code=("/srv",)), Program(script="/srv/a.py"), None),
        (Roots(scripts=True, code=("/srv",)), Program(script="/srv/../a.py"), "/srv/../a.py is not"),
        (Roots(scripts=True, code=("/srv",)), Program(script="/srv/a.py", cwd="/tmp"), "/tmp is not"),
        (Roots(scripts=True, code=("/srv",)), Program(module="a"), "options.cwd"),
        (Roots(scripts=True, code=("/srv",)), Program(module="a", cwd="/srv"), None),
        (Roots(code=("/srv",)), Program(script="/srv/a.py"), "runs no scripts"),
    ],
)
def test_a_host_runs_programs_where_its_operator_says_so_and_only_those(
    roots: Roots, asked: Program, why: str | None
) -> None:
    told = roots.why_not(Needs(program=asked))
    assert told is None if why is None else why in str(told)


def test_a_run_gets_the_path_that_its_data_root_has_on_its_host(disk: Path) -> None:
    for data, path in (("photos:june", "photos/june"), ("photos:", "photos"), (str(disk / "photos"), "photos")):
        assert permitted(training(data), settings(disk), needs_root=True).data == str(disk / path)
    assert permitted(training("photos"), settings(disk), needs_root=True).data == str(disk / "photos")
    assert permitted(training("digits"), settings(disk), needs_root=False).data == "digits"


def test_a_run_gets_a_path_as_it_is_where_there_are_no_data_roots(disk: Path) -> None:
    anywhere = Settings(run_root=disk / "runs")
    assert permitted(training(str(disk / "elsewhere")), anywhere, needs_root=True).data == str(disk / "elsewhere")
    assert permitted(training("./here"), anywhere, needs_root=True).data == "./here"


@pytest.mark.parametrize(
    "data", ["photos:out", "photos:../elsewhere", "photos:/etc", "maps:", "PHOTOS/out", "OUT", "/"]
)
def test_a_run_reads_no_data_outside_of_the_roots_by_a_link_a_step_up_or_a_path(disk: Path, data: str) -> None:
    data = data.replace("PHOTOS", str(disk / "photos")).replace("OUT", str(disk / "elsewhere"))
    with pytest.raises(DataError, match="root"):
        permitted(training(data), settings(disk), needs_root=True)


@pytest.mark.parametrize("field", ["resume", "weights"])
def test_weights_come_out_of_the_roots_or_the_run_root_too(disk: Path, field: str) -> None:
    inside, outside = disk / "runs" / "job-1" / "last.pt", disk / "elsewhere" / "last.pt"
    taken = permitted(training("digits", **{field: str(inside)}), settings(disk), needs_root=False)
    assert getattr(taken, field) == str(inside)
    with pytest.raises(DataError, match=f"{field}: "):
        permitted(training("digits", **{field: str(outside)}), settings(disk), needs_root=False)


def test_no_program_runs_on_a_host_whose_operator_has_not_turned_them_on(disk: Path) -> None:
    train = program(script=str(disk / "code" / "train.py"))
    with pytest.raises(ConfigError, match="RANKZERO_SCRIPTS=on"):
        permitted(train, settings(disk, code_roots=str(disk / "code")), needs_root=False)
    assert permitted(train, settings(disk, scripts="on"), needs_root=False) == train


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"script": "ROOT/elsewhere/train.py"}, "options.script"),
        ({"script": "ROOT/code/../elsewhere/train.py"}, "options.script"),
        ({"script": "ROOT/code/out.py"}, "options.script.*leads to"),
        ({"script": "ROOT/code/train.py", "cwd": "ROOT/elsewhere"}, "options.cwd"),
        ({"module": "train"}, "options.cwd"),
        ({"module": "train", "cwd": "ROOT/elsewhere"}, "options.cwd"),
        ({"module": "out", "cwd": "ROOT/code"}, "options.module.*leads to"),
        ({"module": "timeit", "cwd": "ROOT/code", "args": ["import os"]}, "there is no module timeit"),
        ({"script": "ROOT/code/train.py", "env": {"PYTHONPATH": "/tmp"}}, "PYTHONPATH"),
        ({"script": "ROOT/code/train.py", "env": {"LD_PRELOAD": "/tmp/a.so"}}, "LD_PRELOAD"),
    ],
)
def test_no_program_outside_of_the_code_roots_is_started_by_a_path_a_link_a_module_or_a_variable(
    disk: Path, options: dict[str, Any], says: str
) -> None:
    whole = {k: v.replace("ROOT", str(disk)) if isinstance(v, str) else v for k, v in options.items()}
    with pytest.raises(ConfigError, match=says):
        permitted(program(**whole), settings(disk, scripts="on", code_roots=str(disk / "code")), needs_root=False)


def test_a_secret_takes_no_variable_that_starts_other_programs(disk: Path) -> None:
    allowed = settings(disk, scripts="on", code_roots=str(disk / "code"))
    train = program(script=str(disk / "code" / "train.py"))
    with pytest.raises(ConfigError, match="secrets: PYTHONSTARTUP"):
        permitted(train, allowed, needs_root=False, variables=["TOKEN", "PYTHONSTARTUP"])
    assert permitted(train, allowed, needs_root=False, variables=["TOKEN"]).options == train.options


def test_a_program_in_a_code_root_is_started_where_its_links_lead(disk: Path) -> None:
    (disk / "code" / "same.py").symlink_to(disk / "code" / "train.py")
    allowed = settings(disk, scripts="on", code_roots=str(disk / "code"))
    taken = permitted(program(script=str(disk / "code" / "same.py"), args=["3"]), allowed, needs_root=False)
    assert taken.options == {"script": str(disk / "code" / "train.py"), "args": ["3"]}
    module = program(module="train", cwd=str(disk / "code"))
    assert permitted(module, allowed, needs_root=False).options == module.options
