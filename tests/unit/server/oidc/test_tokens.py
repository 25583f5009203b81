"""An ID token counts when the provider has signed it, for this client, for this login, and not long ago."""

from __future__ import annotations

import base64
import hmac
import json
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from riseml.base.errors import Refused
from riseml.server.oidc.tokens import TokenRules, UnknownSigningKey, check_id_token

NOW = 1_800_000_000
KEY = RSAKey.generate_key(2048, {"kid": "k1", "use": "sig", "alg": "RS256"})
KEYS = {"keys": [KEY.as_dict(private=False)]}
RULES = TokenRules("https://sso.example.org", "riseml", "n1")
CLAIMS: dict[str, Any] = {
    "iss": "https://sso.example.org",
    "aud": "riseml",
    "sub": "7d2f",
    "nonce": "n1",
    "iat": NOW,
    "exp": NOW + 300,
}


def sign(claims: dict[str, Any], key: RSAKey = KEY, kid: str = "k1") -> str:
    return jwt.encode({"alg": "RS256", "kid": kid}, claims, key)


def test_a_token_of_the_provider_counts() -> None:
    assert check_id_token(sign(CLAIMS), KEYS, RULES, NOW) == CLAIMS
    both = {**CLAIMS, "aud": ["riseml", "other"], "azp": "riseml"}
    assert check_id_token(sign(both), KEYS, RULES, NOW) == both
    without = {name: value for name, value in CLAIMS.items() if name != "nonce"}
    assert check_id_token(sign(without), KEYS, TokenRules(RULES.issuer, RULES.client, None), NOW) == without
    assert check_id_token(sign(CLAIMS), KEYS, RULES, NOW + 330), "clocks may differ by a minute"


@pytest.mark.parametrize(
    "change",
    [
        {"iss": "https://evil.example"},
        {"iss": None},
        {"aud": "other"},
        {"aud": ["other"]},
        {"aud": ["riseml", "other"]},
        {"aud": ["riseml", "other"], "azp": "other"},
        {"azp": "other"},
        {"nonce": "n2"},
        {"nonce": None},
        {"sub": None},
        {"exp": NOW - 61},
        {"exp": None},
        {"iat": NOW + 600},
        {"iat": None},
        {"nbf": NOW + 600},
    ],
)
def test_a_token_for_another_purpose_is_refused(change: dict[str, Any]) -> None:
    claims = {name: value for name, value in {**CLAIMS, **change}.items() if value is not None}
    with pytest.raises(Refused, match="the provider's ID token is"):
        check_id_token(sign(claims), KEYS, RULES, NOW)


def test_a_token_that_the_provider_has_not_signed_is_refused() -> None:
    other = RSAKey.generate_key(2048, {"kid": "k1"})
    head, body, signature = sign(CLAIMS).split(".")
    changed = base64.urlsafe_b64encode(json.dumps({**CLAIMS, "sub": "root"}).encode()).rstrip(b"=").decode()
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    shared = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"k1"}').rstrip(b"=").decode()
    digest = hmac.digest(KEY.as_pem(private=False), f"{shared}.{body}".encode(), "sha256")
    by_public_key = f"{shared}.{body}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"
    tokens = {
        "another key": sign(CLAIMS, other),
        "other claims": f"{head}.{changed}.{signature}",
        "no signature": f"{unsigned}.{body}.",
        "the public key as a secret": by_public_key,
        "no token": "x",
        "empty": "",
    }
    for name, token in tokens.items():
        with pytest.raises(Refused, match="the provider's ID token is not valid"):
            pytest.fail(f"{name}: {check_id_token(token, KEYS, RULES, NOW)}")


def test_a_token_with_an_unknown_key_asks_for_the_keys_again() -> None:
    with pytest.raises(UnknownSigningKey):
        check_id_token(sign(CLAIMS, kid="k2"), KEYS, RULES, NOW)
