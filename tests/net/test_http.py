"""Which base URLs are taken, and that a refused one is not repeated: it may hold a password."""

from __future__ import annotations

import socket

import pytest

from debate.errors import ConfigError
from debate.net.http import check_base_url


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("https://10.0.0.7", "https://10.0.0.7"),
        ("http://no-such-host.invalid/v1", "http://no-such-host.invalid/v1"),
    ],
)
def test_an_ordinary_address_is_taken_without_its_last_slash(url: str, taken: str) -> None:
    assert check_base_url(url) == taken


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest", "http://169.254.0.1", "http://2852039166/", "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376", "http://169.254.43518", "http://[fe80::1]:8000/v1",
        "http://[::ffff:169.254.169.254]/v1",
    ],
)  # fmt: skip
def test_a_link_local_address_is_refused_however_it_is_written(url: str) -> None:
    with pytest.raises(ConfigError, match="link-local"):
        check_base_url(url)


def test_a_name_that_stands_for_a_link_local_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(*_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 80)) for ip in ("93.184.216.34", "169.254.169.254")]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    with pytest.raises(ConfigError, match="metadata is a link-local address"):
        check_base_url("http://metadata/v1")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://user:hunter2@host/v1", "user name"),
        ("http://hunter2@host/v1", "user name"),
        ("ftp://user:hunter2@host/v1", "user name"),
        ("file:///etc/hunter2", "http"),
        ("host:8000/hunter2", "http"),
        ("http:///hunter2", "no host"),
        ("http://host:port/hunter2", "cannot be read"),
        ("http://host:99999/hunter2", "cannot be read"),
        ("http://[::1/hunter2", "cannot be read"),
        ("http://host/v1?key=hunter2", r"no query \(\?\)"),
        ("http://host/v1#hunter2", r"no query \(\?\)"),
        ("http://host/hunter2 v1", "spaces"),
        ("http://host/hunter2\nv1", "spaces"),
    ],
)
def test_an_unusable_address_is_refused_and_not_repeated(url: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        check_base_url(url)
    assert caught.value.field == "base_url"
    assert "hunter2" not in str(caught.value)
