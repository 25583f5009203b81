"""Which variables keep their values to themselves."""

from __future__ import annotations

import pytest

from riseml.spec.scalars.secret_names import looks_secret


@pytest.mark.parametrize(
    "name",
    [
        *("API_TOKEN", "token", "WANDB_API_KEY", "APIKEY", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "PGPASSWORD"),
        *("HTTP_AUTH", "GOOGLE_APPLICATION_CREDENTIALS", "SENTRY_DSN", "MY_PASSWD", "SESSION_COOKIE", "KEY_OF_PAUL"),
        *("PGPASS", "SSH_KEYS", "ClientSecret"),
    ],
)
def test_a_name_that_looks_secret(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "MAX_TOKENS",
        "MONKEY",
        "TOKENIZER",
        "OUTPUT_DIR",
        "TF_CONFIG",
        "MASTER_ADDR",
        "AUTHOR",
        "KEYBOARD",
        "LEARNER_PORT",
    ],
)
def test_a_name_that_does_not(name: str) -> None:
    assert not looks_secret(name)
