"""The client of one engine: which version of the API it speaks."""

from __future__ import annotations

import pytest
import requests
from docker.errors import APIError

from riseml.executors.transports.engine_client import choose_api_version, translate_refusal


@pytest.mark.parametrize(
    ("engine", "offered", "spoken"),
    [("20.10", "1.41", "1.41"), ("26.1", "1.45", "1.45"), ("29", "1.52", "1.45"), ("a far older one", "1.9", "1.9")],
)
def test_no_engine_is_spoken_to_in_a_version_that_was_never_tried(engine: str, offered: str, spoken: str) -> None:
    assert choose_api_version(offered) == spoken, engine


@pytest.mark.parametrize(
    ("status", "words", "permanent"),
    [
        (403, "Address already in use", False),
        (403, "endpoint with name riseml-1-train-a1 already exists in network riseml-1", False),
        (403, "error while removing network: network riseml-1 id 5d4c has active endpoints", False),
        (
            409,
            'Conflict. The container name "/riseml-output-1" is already in use by container "5d4c".',
            False,
        ),
        (409, "removal of container 5d4c is already in progress", False),
        (409, "container is marked for removal and cannot be started", False),
        (404, "network riseml-1 not found", False),
        (500, "task 5d4c: already exists", False),
        (400, 'OCI runtime create failed: exec: "sh": executable file not found in $PATH', True),
        (404, "pull access denied for busybox", True),
        (403, "the container would break a rule of this engine", True),
    ],
)
def test_a_refusal_of_what_an_earlier_container_has_is_not_the_last_word(
    status: int, words: str, *, permanent: bool
) -> None:
    answer = requests.Response()
    answer.status_code = status
    error = translate_refusal(APIError("refused", answer, words))
    assert (error.permanent, error.message) == (permanent, words)
