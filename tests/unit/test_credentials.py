"""Where a client's token comes from, where it may be sent, and that nobody else sees it."""

import stat
import threading
from pathlib import Path

import pytest

from rankzero import Client, credentials
from rankzero.errors import UsageError

TOKEN = "rz_" + "a" * 43
OTHER = "rz_" + "b" * 43
URL = "https://rankzero.example.org"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An account with nothing stored."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def token_for(url: str, token: str | None = None) -> str | None:
    found = credentials.find(url, token=token)
    return None if found is None else found.token


def test_a_token_is_the_one_given_or_else_that_of_the_environment_or_else_the_stored_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert token_for(URL) is None
    credentials.store(URL, TOKEN)
    assert token_for(URL) == TOKEN
    assert token_for("https://elsewhere.example.org") is None
    monkeypatch.setenv("RANKZERO_TOKEN", OTHER)
    assert token_for(URL) == OTHER
    assert token_for(URL, token="rz_mine") == "rz_mine"


def test_each_service_has_a_token_of_its_own_until_it_is_forgotten() -> None:
    credentials.store(URL, TOKEN)
    file = credentials.store("https://10.0.0.7:8443/rank zero", OTHER)

    assert file.read_text().count("token = ") == 2
    assert credentials.services() == ["https://10.0.0.7:8443/rank zero", URL]
    assert credentials.forget(URL)
    assert not credentials.forget(URL)
    assert (token_for(URL), token_for("https://10.0.0.7:8443/rank zero")) == (None, OTHER)


@pytest.mark.parametrize(
    "written", ["https://rankzero.example.org/", "HTTPS://RankZero.Example.org", "https://rankzero.example.org:443"]
)
def test_one_service_has_one_token_however_its_url_is_written(written: str) -> None:
    credentials.store(URL, TOKEN)
    assert token_for(written) == TOKEN


def test_nobody_else_may_read_the_tokens_and_a_file_that_they_may_is_not_used() -> None:
    file = credentials.store(URL, TOKEN)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [each.name for each in file.parent.iterdir()] == [file.name]

    file.chmod(0o640)
    with pytest.raises(UsageError, match="chmod 600"):
        credentials.find(URL)


@pytest.mark.parametrize("text", ["token = ", '["https://a"]\nsecret = "x"\n', "a = 1\n", '["https://a"]\ntoken = 1\n'])
def test_a_damaged_file_is_said_to_be_one(text: str) -> None:
    file = credentials.store(URL, TOKEN)
    file.write_text(text)
    with pytest.raises(UsageError, match="is damaged"):
        credentials.find(URL)


def test_an_account_with_no_home_of_its_own_has_no_stored_token_and_stores_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    assert (token_for(URL), credentials.forget(URL)) == (None, False)
    with pytest.raises(UsageError, match=r"Not a directory|File exists"):
        credentials.store(URL, TOKEN)

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 7)  # a number with no name
    assert (token_for(URL), credentials.forget(URL)) == (None, False)
    with pytest.raises(UsageError, match="XDG_CONFIG_HOME"):
        credentials.store(URL, TOKEN)


def test_tokens_that_are_stored_at_the_same_time_are_all_stored() -> None:
    urls = [f"https://{number}.example.org" for number in range(20)]
    threads = [threading.Thread(target=credentials.store, args=(url, TOKEN)) for url in urls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert credentials.services() == sorted(urls)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000", "http://localhost", "http://[::1]:8000", "http://127.9.9.9"])
def test_a_token_stays_on_this_machine_without_encryption(url: str) -> None:
    assert token_for(url, TOKEN) == TOKEN


@pytest.mark.parametrize("url", ["http://10.0.0.7:8000", "http://gpu-box", "http://127.0.0.1.example.org"])
def test_a_token_does_not_travel_unencrypted_unless_somebody_says_so(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="unencrypted") as refused:
        Client(url, token=TOKEN)
    assert TOKEN not in str(refused.value)
    with pytest.raises(UsageError, match="unencrypted"):
        credentials.store(url, TOKEN)

    Client(url, token=TOKEN, insecure=True).close()
    credentials.store(url, TOKEN, insecure=True)
    assert token_for(url) == TOKEN
    with pytest.raises(UsageError, match="unencrypted"):  # what was stored so was said of that token alone
        credentials.find(url, token=OTHER)
    monkeypatch.setenv("RANKZERO_INSECURE", "1")
    assert token_for(url, OTHER) == OTHER
    with pytest.raises(UsageError, match="unencrypted"):
        credentials.find(url, token=OTHER, insecure=False)


def test_without_a_token_any_service_may_be_asked() -> None:
    with Client("http://gpu-box:8000") as client:
        assert client.url == "http://gpu-box:8000"


@pytest.mark.parametrize("token", [f"{TOKEN}\n", "rz_ a", "rz_\x00", "rz_é", f"{TOKEN}\r\nX-Header: 1"])
def test_what_no_header_can_carry_is_no_token_and_is_not_shown(token: str) -> None:
    for use in (lambda: Client(URL, token=token), lambda: credentials.store(URL, token)):
        with pytest.raises(UsageError, match="no token has") as refused:
            use()
        assert "rz_" not in str(refused.value)


@pytest.mark.parametrize("url", ["https://user:word@example.org", "https://user@example.org"])
def test_a_url_with_a_password_in_it_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(UsageError, match="takes tokens") as refused:
        Client(url)
    assert "word" not in str(refused.value).removeprefix("the URL of example.org has a user name or password")


def test_a_token_is_in_no_repr() -> None:
    credentials.store(URL, TOKEN)
    with Client(URL, token=TOKEN) as client:
        shown = [repr(client), repr(client._connection), repr(client._connection._http.headers)]
    assert TOKEN not in "".join([*shown, repr(credentials.stored(URL)), repr(credentials.find(URL))])
