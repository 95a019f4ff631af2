"""An object store for tests: a server of the S3 protocol in this process, with one bucket, which forgets at its end."""

import urllib.request
from typing import Self

from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem

ROOT = "s3://bucket/runs"
"""A checkpoint root in it."""


class ObjectStore:
    """A running store that the test may stop."""

    def __init__(self) -> None:
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._is_running = False

    def __enter__(self) -> Self:
        self._server.start()
        self._is_running = True
        self.url = "http://{}:{}".format(*self._server.get_host_and_port())
        make_bucket = urllib.request.Request(f"{self.url}/bucket", method="PUT")  # noqa: S310  # its own address
        urllib.request.urlopen(make_bucket).close()  # noqa: S310  # its own address
        # This process's own client remembers the address of the store that it was made for.
        S3FileSystem.clear_instance_cache()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it: whoever asks it for anything finds nobody there."""
        if self._is_running:
            self._server.stop()
            self._is_running = False

    @property
    def variables(self) -> dict[str, str]:
        """The environment in which a program finds it."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_MAX_ATTEMPTS": "1",
        }
