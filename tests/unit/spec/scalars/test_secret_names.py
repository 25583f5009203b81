"""Which variables keep their values to themselves."""

from __future__ import annotations

import pytest

from riseml.spec.scalars.secret_names import looks_secret


@pytest.mark.parametrize(
    "name",
    [
        *("API_TOKEN", "token", "WANDB_API_KEY", "APIKEY", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "PGPASSWORD"),
        *("HTTP_AUTH", "GOOGLE_APPLICATION_CREDENTIALS", "SENTRY_DSN", "MY_PASSWD", "SESSION_COOKIE", "KEY_OF_PAUL"),
        *("PGPASS", "SSH_KEYS", "ClientSecret", "S3_ACCESSKEY", "SSH_PRIVATEKEY", "AZURE_STORAGE_CONNECTION_STRING"),
        *("DATABASE_URL", "JWT", "GITHUB_PAT", "PAT_OF_PAUL", "HF_TOKENS", "TOKENS", "TOKEN2", "TOKEN_2", "KEY1"),
        *("SSH_KEYS2", "ACCESSTOKEN"),
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
        "max_new_tokens",
        "NUM_TOKENS",
        "N_TOKENS",
        "TOKENS_PER_BATCH",
        "MAX_INPUT_TOKENS",
        "PATIENCE",
        "DATA_PATH",
    ],
)
def test_a_name_that_does_not(name: str) -> None:
    assert not looks_secret(name)
