"""Networks that the engine refuses to remove: what counts as one, when it is written off, and what clears it."""

from __future__ import annotations

import pytest
import requests
from docker.errors import APIError

from riseml.executors.docker.networks import WRITE_OFF_AFTER, StuckNetworks, explain_stuck, is_stuck


def refusal(status: int, words: str) -> APIError:
    answer = requests.Response()
    answer.status_code = status
    return APIError("refused", answer, words)


@pytest.mark.parametrize(
    ("error", "stuck"),
    [
        (refusal(403, "error while removing network: network riseml-1 id 5 has active endpoints"), True),
        (refusal(403, "operation not permitted on predefined bridge network"), False),
        (refusal(500, "has active endpoints"), False),
        (refusal(400, "rpc error: code = FailedPrecondition desc = network 5 is in use by task 7"), True),
        (refusal(400, "rpc error: code = FailedPrecondition desc = network 5 is in use by service 7"), False),
    ],
)
def test_only_a_counted_endpoint_or_task_makes_a_network_stuck(error: APIError, *, stuck: bool) -> None:
    assert is_stuck(error) == stuck


def test_a_network_is_written_off_a_minute_after_the_first_refusal() -> None:
    seconds = [100.0]
    stuck = StuckNetworks(lambda: seconds[0])
    stuck.note_refusal("5")
    seconds[0] += WRITE_OFF_AFTER - 1
    stuck.note_refusal("5")
    assert not stuck.written_off()
    seconds[0] += 1
    assert stuck.written_off() == {"5"}
    stuck.note_removal("5")
    assert not stuck.written_off()


def test_the_error_says_what_clears_it() -> None:
    assert "in use by shell, web: `docker network disconnect` clears it" in explain_stuck("n", ["web", "shell"]).message
    assert "a container that is gone" in explain_stuck("n", []).message
    assert "a restart of the engine clears it" in explain_stuck("n", []).message
