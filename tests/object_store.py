"""An object store for tests: a server of the S3 protocol in this process, with one bucket, which forgets at its end."""

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from moto.server import ThreadedMotoServer

BUCKET = "bucket"


@contextmanager
def object_store() -> Iterator[dict[str, str]]:
    """Run a store, and yield the variables by which a program finds it under `s3://bucket`."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        make_bucket = urllib.request.Request(f"{url}/{BUCKET}", method="PUT")  # noqa: S310  # its own address
        urllib.request.urlopen(make_bucket).close()  # noqa: S310
        yield {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        server.stop()
