"""Records as JSON, in many threads at once."""

from __future__ import annotations

import subprocess
import sys

from tests.support.waiting import DEADLINE

FIRST_USES = """
import sys, threading
from dataclasses import dataclass
from riseml.store.codec import from_json, parse_json

sys.setswitchinterval(1e-6)
for number in range(60):
    @dataclass(frozen=True)
    class Inner:
        name: str
        sizes: tuple[int, ...] = ()
        note: str | None = None

    @dataclass(frozen=True)
    class Middle:
        inner: Inner
        others: tuple[Inner, ...] = ()

    @dataclass(frozen=True)
    class Outer:
        first: Middle
        second: Middle
        last: Inner

    middle = {"inner": {"name": "a"}, "others": [{"name": "b", "sizes": [1]}]}
    barrier = threading.Barrier(4)
    found = []

    def read(position):
        barrier.wait()
        if position % 2:
            found.append(from_json({"first": middle, "second": middle, "last": {"name": "c"}}, Outer).first)
        else:
            found.append(parse_json('{"inner": {"name": "a"}, "others": [{"name": "b", "sizes": [1]}]}', Middle))

    threads = [threading.Thread(target=read, args=(position,), daemon=True) for position in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [Middle(Inner("a"), (Inner("b", (1,)),))] * 4
"""


def test_many_threads_may_read_a_kind_of_record_for_the_first_time() -> None:
    """Two threads that make msgspec look at a class at the same time end the process with a segmentation fault."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_USES], capture_output=True, text=True, check=False, timeout=DEADLINE
    )
    assert (done.returncode, done.stderr) == (0, "")
