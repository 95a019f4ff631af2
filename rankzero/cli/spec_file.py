"""A job spec from a YAML or JSON file, standard input and flags, the later ones on top of the earlier."""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from rankzero.errors import UsageError


class _Loader(yaml.SafeLoader):
    """YAML with all numbers of JSON: without more, PyYAML reads `1e-3` as text, for which it wants `1.0e-3`."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def read_spec(path: Path | None) -> dict[str, Any]:
    """Return the spec in a file, or in standard input for `-`. Raises UsageError where it holds none."""
    if path is None:
        return {}
    name = "standard input" if str(path) == "-" else str(path)
    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
        content = _loaded(text)
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{name} is neither YAML nor JSON: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise UsageError(f"{name}: a job spec is a mapping with `train` and `device`, not {type(content).__name__}")
    return content


def merged(
    spec: Mapping[str, Any],
    *,
    job: Mapping[str, Any],
    train: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return `spec` with the fields of the job and of its `train` that are not None on top, and then `settings`.

    A setting is a field of `train`, or one within it by a dotted name (`options.mixup`), and may be None. Raises
    UsageError for a field that is both in `train` and set.
    """
    found, given, settings = dict(spec) | _given(job), _given(train), settings or {}
    own = found.get("train", {})
    if not isinstance(own, Mapping):
        raise UsageError(f"train: a mapping is wanted, not {type(own).__name__}")
    for name in settings:
        if name in given:
            raise UsageError(f"{name} is given twice: by --{name} and by --set {name}=…")
    trained = dict(own) | given
    for name, value in settings.items():
        trained = _placed(trained, name, value)
    return found | {"train": trained}


def here(data: str | None) -> str | None:
    """Return a folder of this machine by its absolute path: the host that trains has another working folder.

    A name with no slash is a data set's, and a folder that is not here may be there.
    """
    return str(Path(data).absolute()) if data is not None and "/" in data and Path(data).is_dir() else data


def parse_device(text: str | None) -> Any:
    """Return a device as a spec has it: `{count: 2}` is read as YAML, and every other word stays as it is.

    Raises UsageError.
    """
    if text is None or not text.lstrip().startswith("{"):
        return text
    try:
        return _loaded(text)
    except yaml.YAMLError as error:
        raise UsageError(f"--device {text}: {' '.join(str(error).split())}") from error


def parse_labels(labels: Sequence[str]) -> dict[str, str] | None:
    """Return `key=value` words as labels; None for none. Raises UsageError for a word that is no such pair."""
    return dict(map(_pair, labels)) or None


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Return `field=value` words as settings by the name as it is written, each value read as YAML.

    Raises UsageError.
    """
    found: dict[str, Any] = {}
    for key, text in map(_pair, settings):
        if not all(key.split(".")):
            raise UsageError(f"--set {key}={text}: a part of {key!r} has no name")
        found.pop(key, None)  # the last one of a name counts, at the place where it stands
        try:
            found[key] = _loaded(text)
        except yaml.YAMLError as error:
            raise UsageError(f"--set {key}={text:.100}: {' '.join(str(error).split())}") from error
    return found


def _loaded(text: str) -> Any:
    """Return what YAML means. Raises YAMLError, also where PyYAML's own conversions fail in a way of their own."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506  (a SafeLoader)
    except (ValueError, ArithmeticError, LookupError, AttributeError, RecursionError) as error:
        raise yaml.YAMLError(f"a value of it cannot be read: {error}") from error


def _pair(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or not key:
        raise UsageError(f"{word!r}: write it as key=value")
    return key, value


def _placed(fields: Mapping[str, Any], name: str, value: Any, *, within: str = "") -> dict[str, Any]:
    """Return `fields` with a value at its dotted name; `within` is the name of `fields` itself, for an error."""
    own, _, rest = name.partition(".")
    if not rest:
        return dict(fields) | {own: value}
    path = f"{within}{own}"
    inner = fields.get(own)
    if inner is not None and not isinstance(inner, Mapping):
        raise UsageError(f"--set {within}{name}=…: {path} is {inner!r:.100}, which has no fields")
    return dict(fields) | {own: _placed(inner or {}, rest, value, within=f"{path}.")}


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
