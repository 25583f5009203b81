"""Addresses of proxied apps: signed, for one browser, once, and worth nothing at another host."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from riseml.server.web.proxied_apps import ProxiedApps


class Clock:
    """A time of day that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def sign(text: str, key: bytes = b"key") -> str:
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def test_a_token_is_good_once_for_a_minute_and_for_its_host() -> None:
    clock = Clock()
    proxied_apps = ProxiedApps(sign, clock)
    one, other = proxied_apps.invite("4"), proxied_apps.invite("144.3")
    assert proxied_apps.find_experiment(one.label) == "4"
    assert proxied_apps.find_experiment(other.label) == "144.3"
    assert proxied_apps.admit(other.label, one.token) is None, "of another host"
    assert proxied_apps.admit(one.label, one.token) is None, "it was used"
    again = proxied_apps.invite("4")
    assert again.label == one.label, "TensorBoard finds what it has kept at its host"
    cookie = proxied_apps.admit(again.label, again.token)
    assert cookie is not None
    assert proxied_apps.is_admitted(one.label, cookie)
    assert not proxied_apps.is_admitted(other.label, cookie)
    late = proxied_apps.invite("4")
    clock.now += 61
    assert proxied_apps.admit(late.label, late.token) is None
    clock.now += 7 * 86_400
    assert not proxied_apps.is_admitted(one.label, cookie), "too old"


def test_what_a_server_gave_is_good_for_the_next_one_and_for_no_other_key() -> None:
    first = ProxiedApps(sign, Clock())
    invitation = first.invite("4")
    cookie = first.admit(invitation.label, invitation.token) or ""
    assert ProxiedApps(sign, Clock()).is_admitted(invitation.label, cookie)
    foreign = ProxiedApps(lambda text: sign(text, b"other"), Clock())
    assert foreign.find_experiment(invitation.label) is None
    assert not foreign.is_admitted(invitation.label, cookie)


@pytest.mark.parametrize(
    "label",
    ["", "4", "4-", "4-" + "0" * 40, "5-LABEL", "LABEL ", "LABEL.localhost", "-4-LABEL", "4-4-LABEL", "\u0664-LABEL"],
)
def test_an_unknown_label_is_refused(label: str) -> None:
    proxied_apps = ProxiedApps(sign)
    given = proxied_apps.invite("4").label
    assert proxied_apps.find_experiment(label.replace("LABEL", given.partition("-")[2])) is None


@pytest.mark.parametrize(
    "cookie", ["", ".", "9" * 13, "99999999999.", "99999999999.0", "\u0669.x", "a.b.c", "1\ud800."]
)
def test_an_unknown_cookie_is_refused(cookie: str) -> None:
    proxied_apps = ProxiedApps(sign)
    assert not proxied_apps.is_admitted(proxied_apps.invite("4").label, cookie)


def test_few_tokens_wait() -> None:
    proxied_apps = ProxiedApps(sign)
    first = proxied_apps.invite("1")
    for number in range(2, 40):
        last = proxied_apps.invite(str(number))
    assert proxied_apps.admit(first.label, first.token) is None
    assert proxied_apps.admit(last.label, last.token) is not None


def test_a_name_that_is_none_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="not the name"):
        ProxiedApps(sign).invite("../4")
