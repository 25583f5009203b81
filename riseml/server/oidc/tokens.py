"""The check of an ID token (OpenID Connect Core 1.0, 3.1.3.7). joserfc checks the signature and the claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from riseml.base.errors import Refused
from riseml.base.records import dataclass

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
"""Signatures with a public key of the provider alone: `none`, and secrets that both sides have, are not taken."""

_LEEWAY = 60  # seconds that two clocks may differ
_HINT = "try again; if it comes again, ask the admin of this server"


class UnknownSigningKey(Refused):
    """The token is signed with a key that the provider did not have when its keys were read."""


@dataclass(frozen=True, slots=True)
class TokenRules:
    """What a token must say."""

    issuer: str
    client: str  # for whom it is
    nonce: str | None  # of this login; None: the flow has none


def check_id_token(token: str, keys: Mapping[str, Any], rules: TokenRules, moment: float) -> dict[str, object]:
    """Return the claims of an ID token.

    Args:
        token: as the provider has sent it.
        keys: the key set of the provider.
        rules: what it must say.
        moment: seconds since 1970.

    Raises:
        UnknownSigningKey: read the keys of the provider again.
        Refused: it is not valid.
    """
    from joserfc import jwt
    from joserfc.errors import InvalidKeyIdError, JoseError
    from joserfc.jwk import KeySet

    try:
        decoded = jwt.decode(token, KeySet.import_key_set({"keys": keys["keys"]}), algorithms=list(ALGORITHMS))
        options: dict[str, Any] = {
            "iss": {"essential": True, "value": rules.issuer},
            "aud": {"essential": True, "value": rules.client},
            "sub": {"essential": True},
            "exp": {"essential": True},
            "iat": {"essential": True},
        }
        if rules.nonce is not None:
            options["nonce"] = {"essential": True, "value": rules.nonce}
        jwt.JWTClaimsRegistry(now=int(moment), leeway=_LEEWAY, **options).validate(decoded.claims)
    except InvalidKeyIdError as error:
        raise UnknownSigningKey("the provider signs with a key that it does not publish", _HINT) from error
    except (JoseError, ValueError, TypeError, KeyError) as error:
        raise Refused(f"the provider's ID token is not valid: {type(error).__name__}", _HINT) from error
    claims: dict[str, object] = decoded.claims
    audience = claims.get("aud")
    if claims.get("azp", rules.client) != rules.client or (
        isinstance(audience, list) and len(audience) > 1 and "azp" not in claims
    ):
        raise Refused("the provider's ID token is for another program", _HINT)
    return claims
