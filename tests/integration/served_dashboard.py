"""The API with a dashboard of a few lines, which a test puts in place as the build does."""

import http.client
import shutil
import sys
from pathlib import Path
from typing import Any

import httpx2

from api import bundle
from tests.api_server import ApiServer
from tests.children import start_child
from tests.waiting import wait_until

PAGE = """<!doctype html>
<html>
  <head>
    <script type="module" src="./assets/index-1f.js"></script>
  </head>
  <body></body>
</html>
"""
SCRIPT = "export const words = 'of the dashboard'\n" * 50
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Encoding": "gzip, deflate, br"}
PLAIN = {"Accept-Encoding": "identity"}
SERVE = (
    "import sys; from pathlib import Path; from api import bundle; bundle.STATIC = Path(sys.argv.pop(1)); "
    "from api.__main__ import main; main()"
)
"""`python -m api` with another folder of the dashboard."""


class Serving(ApiServer):
    """The API with a dashboard of the tests, or none."""

    def __init__(self, database_url: str, folder: Path, **settings: Any) -> None:
        super().__init__(database_url, folder, **settings)
        self.static = folder / "static"

    def start(self) -> None:
        """Start it and return once it answers."""
        command = [sys.executable, "-c", SERVE, str(self.static), "--port", str(self.port)]
        self._process = start_child(command, log=self.log, folder=self._folder, environment=self._environment)
        wait_until(self._answers, timeout_s=30, what=lambda: f"the API to answer; its log:\n{self.log.read_text()}")

    def build(self, page: str = PAGE, **assets: str) -> None:
        """Put a build in place, as the build does."""
        new = self.static.with_name("new")
        write_build(new, page, **assets)
        if self.static.exists():
            self.static.rename(self.static.with_name("old"))
        new.rename(self.static)
        shutil.rmtree(self.static.with_name("old"), ignore_errors=True)

    def raw(self, path: str, method: str = "GET") -> http.client.HTTPResponse:
        """Ask for exactly this path, which clients would tidy up."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path, headers={"Accept": "text/html"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer


def write_build(folder: Path, page: str = PAGE, **assets: str) -> None:
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(page)
    (folder / "favicon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (folder / "assets" / "inter-0a.woff2").write_bytes(b"wOF2" + bytes(range(256)))
    for name, text in ({"index-1f": SCRIPT} | assets).items():
        (folder / "assets" / f"{name}.js").write_text(text)
    bundle.complete(folder, inputs="of the tests", node=22)


def script_of(api: Serving, **headers: str) -> httpx2.Response:
    return api.http.get("/ui/assets/index-1f.js", headers=PLAIN | headers)
