"""Who may ask the server: the host and the origin that a request names, and its token."""

from __future__ import annotations

import pytest

from debate.server.access import Access, is_loopback


def status(access: Access, **headers: str) -> int:
    refused = access.refusal(headers)
    return 200 if refused is None else refused[0]


@pytest.mark.parametrize(
    "host", ["127.0.0.1:12555", "localhost", "LocalHost:80", "127.9.9.9", "[::1]:12555", "judge.example:1"]
)
def test_a_loopback_host_and_the_one_that_was_given_are_ours(host: str) -> None:
    assert status(Access("judge.example"), host=host) == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:12555", "10.0.0.1", "[::1", "", "0.0.0.0"])
def test_a_host_that_is_not_ours_is_refused_as_dns_rebinding_would_send_it(host: str) -> None:
    assert status(Access("127.0.0.1"), host=host) == 403
    assert status(Access("127.0.0.1", "secret"), host=host, authorization="Bearer secret") == 403


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://localhost:12555", 200),
        ("HTTP://LOCALHOST:12555", 200),
        ("http://evil.example", 403),
        ("http://localhost:3000", 403),
        ("http://localhost:12555.evil.example", 403),
        ("null", 403),
        ("", 403),
    ],
)
def test_a_page_of_another_origin_is_refused(origin: str, expected: int) -> None:
    assert status(Access("127.0.0.1"), host="localhost:12555", origin=origin) == expected


def test_with_a_token_a_server_on_every_address_goes_by_any_name() -> None:
    anywhere = Access("0.0.0.0", "secret")
    assert status(anywhere, host="judge.example", authorization="Bearer secret") == 200
    assert status(anywhere, host="judge.example") == 401
    assert status(Access("0.0.0.0"), host="judge.example") == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_is_this_machine_alone(host: str) -> None:
    assert is_loopback(host)
    assert not any(map(is_loopback, ("0.0.0.0", "192.168.0.7", "::", "example.org", "")))
