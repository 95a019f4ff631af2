"""The built dashboard as files: the build leaves them in a folder with a manifest, and the service reads them whole.

The manifest names each file with its digest. So files of two builds are never taken for one, and what lies in the
folder besides is nobody's to see. The standard library alone: whoever only builds needs none of the service.
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

STATIC = Path(__file__).with_name("static")
"""Where the build puts it, and the service looks for it."""
MANIFEST = "build.json"
PAGE = "index.html"
HEAD = b"<head>"
"""Where the service tells the page, at its first tag, by which address it was reached."""
COMPRESSED = frozenset({".css", ".html", ".js", ".json", ".svg", ".txt", ".webmanifest"})
"""Endings of text; fonts and images are compressed already."""


class BundleError(Exception):
    """There is no bundle in the folder, or not all of one."""


@dataclass(frozen=True)
class File:
    """One file, as a browser may load it."""

    content: bytes
    compressed: bytes | None
    """By gzip; None where that does not make it smaller."""
    digest: str
    """SHA-256 of the content."""

    @property
    def transferred(self) -> int:
        """Bytes that a browser loads."""
        return len(self.content if self.compressed is None else self.compressed)


@dataclass(frozen=True)
class Bundle:
    """All files of one build, by their paths below its folder."""

    inputs: str
    """Digest of what it was built from."""
    node: int
    """The major version of the Node that built it."""
    files: Mapping[str, File]

    @property
    def transferred(self) -> int:
        """Bytes that a browser loads which opens every page."""
        return sum(file.transferred for file in self.files.values())


def complete(folder: Path, *, inputs: str, node: int) -> None:
    """Compress the files that were built into a folder, and write their manifest. Raises BundleError."""
    if HEAD not in _content(folder / PAGE):
        raise BundleError(f"{PAGE} has no {HEAD.decode()}, where the service writes its address")
    listed = {}
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        content = path.read_bytes()
        compressed = gzip.compress(content, mtime=0) if path.suffix in COMPRESSED else content
        is_smaller = len(compressed) < len(content)
        if is_smaller:
            _beside(path).write_bytes(compressed)
        listed[path.relative_to(folder).as_posix()] = {
            "sha256": _digest(content),
            "gzip_sha256": _digest(compressed) if is_smaller else None,
        }
    manifest = {"inputs": inputs, "node": node, "files": listed}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> Bundle:
    """Return the bundle in a folder. Raises BundleError where there is none, or a file is not the one of its build."""
    try:
        manifest = json.loads(_content(folder / MANIFEST))
        files = {name: _file(folder / name, **digests) for name, digests in manifest["files"].items()}
        return Bundle(inputs=manifest["inputs"], node=manifest["node"], files=files)
    except (ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{folder / MANIFEST} is not the manifest of a build") from error


def _file(path: Path, *, sha256: str, gzip_sha256: str | None) -> File:
    compressed = None if gzip_sha256 is None else _known(_beside(path), gzip_sha256)
    return File(_known(path, sha256), compressed, sha256)


def _known(path: Path, digest: str) -> bytes:
    content = _content(path)
    if _digest(content) != digest:
        raise BundleError(f"{path} is not the file that was built")
    return content


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BundleError(f"{path}: {error.strerror}") from error


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.gz")


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()
