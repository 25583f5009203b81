"""What squeue and sinfo print, and its meaning in plain words."""

from __future__ import annotations

import pytest

from riseml.executors.slurm.queue_rows import (
    NodeState,
    PartitionRow,
    describe_end,
    describe_waiting,
    parse_node_states,
    parse_nodes,
    parse_partitions,
    parse_queue,
)
from riseml.model import NodeKind

QUEUE = """\
12|PENDING|Priority|2026-11-23T03:27:33|riseml-5e7a-4-1
13+0|RUNNING|None|2026-11-23T03:20:00|riseml-5e7a-5-1
13+1|PENDING|Resources|N/A|riseml-5e7a-5-1
14|NODE_FAIL|None|2026-11-23T03:20:00|riseml-5e7a-6-1
15|SIGNALING|None|N/A|a name | with bars
garbage
"""


def test_jobs_are_read_and_a_heterogeneous_one_is_one_job() -> None:
    rows = parse_queue(QUEUE)
    assert [(row.id, row.state, row.is_pending, row.has_ended) for row in rows] == [
        ("12", "PENDING", True, False),
        ("13", "PENDING", True, False),
        ("14", "NODE_FAIL", False, True),
        ("15", "SIGNALING", False, False),
    ]
    assert rows[3].name == "a name | with bars"


@pytest.mark.parametrize(
    ("reason", "start", "text"),
    [
        ("Priority", "N/A", "Slurm job 7 waits: jobs of higher priority come first (Priority)"),
        (
            "Resources",
            "T",
            "Slurm job 7 waits: the nodes that it needs are not free yet (Resources); Slurm expects to start it at T",
        ),
        ("SomethingNew", "N/A", "Slurm job 7 waits: SomethingNew"),
        (
            "ReqNodeNotAvail, UnavailableNodes:n3",
            "N/A",
            "Slurm job 7 waits: a node that it needs is down or reserved (ReqNodeNotAvail, UnavailableNodes:n3)",
        ),
    ],
)
def test_reasons_are_plain_words(reason: str, start: str, text: str) -> None:
    (row,) = parse_queue(f"7|PENDING|{reason}|{start}|riseml-a-1-1\n")
    assert describe_waiting(row) == text


def test_an_end_without_a_record_is_explained() -> None:
    rows = parse_queue(QUEUE)
    assert describe_end(rows, "14") == "Slurm job 14 is over: a node of the job failed (NODE_FAIL)"
    assert describe_end(rows, "99") == "Slurm does not know job 99 any more, and it left no record of its end"


def test_nodes_are_read_by_size() -> None:
    text = "2|4|4000|gpu:fake:2\n1|4|4000|(null)\n3|128|512000+|gpu:a100:4(S:0-1),gpu:h100:4(S:2)\nbad\n"
    assert parse_nodes(text) == (NodeKind(3, 128, 512000, 8), NodeKind(2, 4, 4000, 2), NodeKind(1, 4, 4000, 0))


def test_states_of_nodes_are_read_once_for_each_node() -> None:
    text = "n1|idle|none\nn1|idle|none\nn2|down*|Not responding | since 3\nbad\n"
    assert parse_node_states(text) == [
        NodeState("n1", "idle", ""),
        NodeState("n2", "down*", "Not responding | since 3"),
    ]


def test_partitions_are_read_with_their_limits() -> None:
    text = "all*|up|1:00:00\nlong|up|1-12:00:00\nshort|drain|5:30\nfree|up|infinite\nbad\n"
    hour = 3600.0
    assert parse_partitions(text) == [
        PartitionRow("all", is_default=True, state="up", limit=hour),
        PartitionRow("long", is_default=False, state="up", limit=36 * hour),
        PartitionRow("short", is_default=False, state="drain", limit=330.0),
        PartitionRow("free", is_default=False, state="up", limit=None),
    ]
