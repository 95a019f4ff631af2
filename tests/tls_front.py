"""TLS in front of a server, as a proxy of one's own has it: with a certificate that nobody but the test knows."""

import asyncio
import ssl
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class TlsFront:
    """Passes on what comes by TLS to `localhost`, until the end of the block."""

    def __init__(self, port: int, folder: Path) -> None:
        """`port` is that of the server behind it, on this machine."""
        self._behind = port
        self.certificate = _make_certificate(folder)
        """File of the certificate, for SSL_CERT_FILE."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tls-front")
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(timeout=20)
        self.url = f"https://localhost:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(timeout=20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _listen(self) -> asyncio.Server:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate, self.certificate.with_suffix(".key"))
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)

    async def _end(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind_reader, behind_writer = await asyncio.open_connection("127.0.0.1", self._behind)
        try:
            passing = [_pass(reader, behind_writer), _pass(behind_reader, writer)]
            with suppress(asyncio.CancelledError):  # at the end, where nobody waits for it
                await asyncio.wait(map(asyncio.ensure_future, passing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (writer, behind_writer):
                each.transport.abort()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while some := await reader.read(65_536):
            writer.write(some)
            await writer.drain()


def _make_certificate(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    at = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(
            name, name, key.public_key(), x509.random_serial_number(), at - timedelta(1), at + timedelta(1)
        )
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "front.pem"
    file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file.with_suffix(".key").write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return file
