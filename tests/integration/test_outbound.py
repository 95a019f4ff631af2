"""The guard of what is sent to URLs that users named: every way to an address that is not allowed ends at it."""

import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from jobs.addresses import parse_allowed
from tests.receiver import Answer, Receiver
from worker.clock import clock
from worker.outbound import MOST_READ_BYTES, NotSentError, Outbound

Resolve = Callable[[str, list[str]], None]
ONE_ADDRESS = "127.0.0.2"
"""Another address of the loopback network, of which a test allows this one alone."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Resolve:
    """Let a name have these addresses, each for one question; the last of them for all after it."""
    names: dict[str, list[str]] = {}
    ask = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *args: Any, **options: Any) -> Any:
        if host in names:
            answers = names[host]
            host = answers.pop(0) if len(answers) > 1 else answers[0]
        return ask(host, port, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return names.__setitem__


def outbound(allowed: str | None = None, *, timeout_s: float = 10) -> Outbound:
    return Outbound(parse_allowed(allowed), timeout_s=timeout_s)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
    ],
)
def test_no_spelling_of_a_loopback_address_leads_to_it(receiver: Receiver, host: str) -> None:
    with pytest.raises(NotSentError, match=r"not public|is no URL"):
        outbound().post(f"http://{host}:{receiver.port}/", b"{}", {})
    assert receiver.requests == []


@pytest.mark.parametrize("host", ["169.254.169.254", "10.0.0.1", "[fe80::1]", "[fd00::1]", "[64:ff9b::7f00:1]"])
def test_a_private_or_link_local_address_is_refused_before_anything_is_sent(host: str) -> None:
    began_at = clock()
    with pytest.raises(NotSentError, match=r"not public; an operator may allow it in RANKZERO_WEBHOOK_ALLOW"):
        outbound().post(f"http://{host}/", b"{}", {})
    assert clock() - began_at < 4  # it was not even tried


def test_a_name_that_leads_to_a_loopback_address_is_refused(receiver: Receiver, resolve: Resolve) -> None:
    resolve("hooks.example", ["127.0.0.1"])
    with pytest.raises(NotSentError, match=r"hooks\.example has the address 127\.0\.0\.1, which is not public"):
        outbound().post(f"http://hooks.example:{receiver.port}/", b"{}", {})
    assert receiver.requests == []


def test_a_name_that_leads_elsewhere_once_it_was_checked_is_sent_to_where_it_was_checked(resolve: Resolve) -> None:
    with Receiver(ONE_ADDRESS) as checked, Receiver() as other:
        resolve("hooks.example", [ONE_ADDRESS, "127.0.0.1"])
        status = outbound(ONE_ADDRESS).post(f"http://hooks.example:{checked.port}/", b"{}", {})
        resolve("hooks.example", [ONE_ADDRESS, "127.0.0.1"])
        with pytest.raises(NotSentError, match="refused"):  # nobody listens on that port of the allowed address
            outbound(ONE_ADDRESS).post(f"http://hooks.example:{other.port}/", b"{}", {})

        assert status == 204
        assert checked.requests[0].headers["host"] == f"hooks.example:{checked.port}"
        assert other.requests == []


def test_each_request_is_checked_anew(resolve: Resolve) -> None:
    with Receiver(ONE_ADDRESS) as receiver:
        resolve("hooks.example", [ONE_ADDRESS, "127.0.0.1"])
        sender = outbound(ONE_ADDRESS)
        url = f"http://hooks.example:{receiver.port}/"
        assert sender.post(url, b"{}", {}) == 204
        with pytest.raises(NotSentError, match="not public"):
            sender.post(url, b"{}", {})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(receiver: Receiver, status: int) -> None:
    with Receiver() as other:
        receiver.answer = lambda _: Answer(status, location=other.url)
        assert outbound("127.0.0.1").post(receiver.url, b"{}", {}) == status
        assert other.requests == []


def test_no_proxy_of_the_environment_is_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert outbound("127.0.0.1").post(receiver.url, b"{}", {}) == 204
        assert proxy.requests == []


def test_what_is_sent_arrives_as_it_is(receiver: Receiver) -> None:
    body = '{"name": "é"}'.encode()
    assert outbound("127.0.0.1").post(receiver.url + "/a?b=c#d", body, {"X-One": "1"}) == 204
    (request,) = receiver.requests
    assert (request.path, request.body, request.headers["x-one"]) == ("/hook/a?b=c", body, "1")
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 2",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 3,
    ],
    ids=["nothing", "half-a-line", "informational"],
)
def test_a_receiver_that_does_not_come_to_its_answer_is_left_after_the_timeout(answer: bytes) -> None:
    with serving(lambda connection: connection.sendall(answer)) as port:
        began_at = clock()
        with pytest.raises(NotSentError, match="no answer within 1 s"):
            outbound("127.0.0.1", timeout_s=1).post(f"http://127.0.0.1:{port}/", b"{}", {})
    assert clock() - began_at < 5


def test_a_receiver_that_goes_on_answering_byte_by_byte_is_left_after_the_timeout() -> None:
    def trickle(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        stopped = threading.Event()
        while not stopped.wait(0.1):
            connection.sendall(b"x")  # until the other side has gone

    with serving(trickle) as port:
        began_at = clock()
        with pytest.raises(NotSentError, match="no answer within 1 s"):
            outbound("127.0.0.1", timeout_s=1).post(f"http://127.0.0.1:{port}/", b"{}", {})
    assert clock() - began_at < 5


def test_an_endless_answer_is_read_so_far_and_its_status_counts() -> None:
    as_much_as_is_read = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * MOST_READ_BYTES
    with serving(lambda connection: connection.sendall(as_much_as_is_read)) as port:
        began_at = clock()
        assert outbound("127.0.0.1", timeout_s=30).post(f"http://127.0.0.1:{port}/", b"{}", {}) == 200
    assert clock() - began_at < 15, "it waited for more"


def test_the_status_counts_where_the_body_never_ends() -> None:
    with serving(lambda connection: connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n")) as port:
        assert outbound("127.0.0.1", timeout_s=1).post(f"http://127.0.0.1:{port}/", b"{}", {}) == 201


@pytest.mark.parametrize(
    ("answer", "said"),
    [(b"SSH-2.0-OpenSSH\r\n\r\n", "illegal"), (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000, "too")],
    ids=["no-http", "huge-headers"],
)
def test_what_is_no_http_is_not_delivered(answer: bytes, said: str) -> None:
    with serving(lambda connection: connection.sendall(answer)) as port, pytest.raises(NotSentError, match=said):
        outbound("127.0.0.1", timeout_s=5).post(f"http://127.0.0.1:{port}/", b"{}", {})


def test_over_tls_the_name_is_the_host_s_though_its_address_is_connected_to(
    resolve: Resolve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    resolve("hooks.example", ["127.0.0.1"])
    resolve("other.example", ["127.0.0.1"])
    certificate, key = certify("hooks.example", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    asked_for: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: asked_for.append(name)

    def answer(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            received = b""
            while not received.endswith(b"{}"):  # what is left unread has the kernel take the answer back
                if not (part := secured.recv(65_536)):
                    return
                received += part
            secured.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with serving(answer) as port:
        assert outbound("127.0.0.1").post(f"https://hooks.example:{port}/", b"{}", {}) == 204
        with pytest.raises(NotSentError, match="certificate"):
            outbound("127.0.0.1").post(f"https://other.example:{port}/", b"{}", {})
        with pytest.raises(NotSentError, match="certificate"):
            outbound("127.0.0.1").post(f"https://127.0.0.1:{port}/", b"{}", {})
    assert asked_for[:2] == ["hooks.example", "other.example"]


@contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that answers each connection in its own way, then keeps it open; the port it listens on."""
    kept: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            kept.append(connection)
            with suppress(OSError):
                answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        for connection in kept:
            connection.close()
        thread.join()


def certify(name: str, folder: Path) -> tuple[Path, Path]:
    """A certificate for a name, which is its own authority, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.9"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths
