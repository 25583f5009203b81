"""What the first launcher keeps for its gang: values of Horovod, lines that all have reached, and the first failure."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from riseml.job_programs.rank_meeting import ENDED, MOST_VALUES, Rendezvous
from tests.support.waiting import DEADLINE


@contextmanager
def join(meeting: Rendezvous, node: int) -> Iterator[socket.socket]:
    """Connect one launcher; yield its end of the connection."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(DEADLINE)
        meeting.links[node] = theirs
        yield ours


def hear(link: socket.socket) -> list[object]:
    """Return the messages that a launcher has got."""
    return [json.loads(line) for line in link.recv(10_000).decode().splitlines()]


def test_all_jobs_go_on_when_the_last_has_reached_the_line() -> None:
    meeting = Rendezvous(nodes=2, size=1)
    with join(meeting, 0) as first, join(meeting, 1) as second:
        meeting.handle_message(0, {"reached": 1})
        assert meeting.released == -1
        meeting.handle_message(1, {"reached": 2})
        meeting.handle_message(0, {"reached": ENDED})
        assert hear(first) == hear(second) == [{"go": 1}, {"go": 2}]


def test_the_first_failure_is_the_cause_for_all() -> None:
    meeting = Rendezvous(nodes=2, size=2)
    with join(meeting, 0) as first, join(meeting, 1) as second:
        meeting.handle_message(1, {"failed": "rank 3 ended"})
        meeting.handle_message(0, {"failed": "rank 0 ended"})
        for node in range(2):
            meeting.handle_message(node, {"reached": 1})
        assert hear(first) == hear(second) == [{"cause": "rank 3 ended"}]
    assert meeting.released == -1, "no job goes on after a failure"


def test_a_line_in_which_only_some_ranks_meet_fails() -> None:
    meeting = Rendezvous(nodes=1, size=3)
    meeting.put("/global/rank_1", b"address")
    meeting.handle_message(0, {"reached": 1})
    assert meeting.cause == {"node": 0, "text": "other ranks called hvd.init(), and not 0, 2"}


def test_a_training_in_which_no_rank_meets_fails_at_its_end() -> None:
    meeting = Rendezvous(nodes=1, size=2)
    meeting.handle_message(0, {"reached": 1})
    assert (meeting.released, meeting.cause) == (1, None)
    meeting.handle_message(0, {"reached": ENDED})
    assert "no process called hvd.init()" in str(meeting.cause)


def test_values_have_a_bound() -> None:
    meeting = Rendezvous(nodes=1, size=1)
    meeting.values = {str(number): b"" for number in range(MOST_VALUES)}
    assert not meeting.put("/global/0", b"")
    assert "/global/0" not in meeting.values


def test_values_of_horovod_stay_until_every_rank_of_their_scope_has_read_them() -> None:
    meeting = Rendezvous(nodes=1, size=2)
    for key in ("rank_0", "0", "rank_1", "1"):
        assert meeting.put(f"/global/{key}", b"address")
    meeting.put("/local_worker-1/0", b"other")
    meeting.drop("/global/1")
    assert len(meeting.values) == 5
    meeting.drop("/global/0")
    assert list(meeting.values) == ["/local_worker-1/0"]
    assert meeting.initialized == {0, 1}
    meeting.put("/global/0", b"of the next program in this line")
    meeting.drop("/global/1")
    assert "/global/0" in meeting.values
