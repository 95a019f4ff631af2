"""What the dashboard is built from: the files that decide what comes out, as one digest."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

WEB = Path(__file__).parent
GENERATED = frozenset({"openapi.json", "src/api/schema.d.ts"})
"""Types, which are gone from what is built."""
_NOT_BUILT = ("*.md", "*.py", "*.test.ts", "*.test.tsx", "eslint.config.js")
_FOLDERS = frozenset({"node_modules", "testing", "__pycache__"})


def digest(web: Path = WEB) -> str:
    """Return the digest of all that a build reads, with the versions of the packages that it is made with."""
    total = sha256()
    for path in sorted(_inputs(web)):
        name = path.relative_to(web).as_posix()
        total.update(f"{name}\0{sha256(path.read_bytes()).hexdigest()}\0".encode())
    return total.hexdigest()


def digest_of_packages(web: Path = WEB) -> str:
    """Return the digest of what says which packages are installed."""
    return sha256(b"\0".join((web / name).read_bytes() for name in ("package.json", "package-lock.json"))).hexdigest()


def _inputs(folder: Path, *, web: Path | None = None) -> Iterator[Path]:
    web = web or folder
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_dir():
            if path.name not in _FOLDERS:
                yield from _inputs(path, web=web)
        elif path.relative_to(web).as_posix() not in GENERATED and not any(map(path.match, _NOT_BUILT)):
            yield path
