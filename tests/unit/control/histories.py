"""Run many random histories in one process: `python -m tests.unit.control.histories (--count N | --minutes M)`.

With HYPOTHESIS_PROFILE=soak every round has another seed, which is printed; `--seed` repeats a round.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.unit.control.history import History
from tests.unit.control.stored import stored_history

STEPS = 20
ROUND = 500


def run(count: int, number: int, *, shrink: bool = True, machine: type[History] = History) -> None:
    """Run this many histories; the same number gives the same histories.

    Raises:
        AssertionError: a law was broken; hypothesis prints the shortest history that it found.
    """
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    few = settings(
        max_examples=count,
        stateful_step_count=STEPS,
        deadline=None,
        derandomize=False,  # the seed decides
        database=None,
        phases=phases,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    # a subclass: `seed` marks the class
    run_state_machine_as_test(seed(number)(type(machine.__name__, (machine,), {})), settings=few)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.unit.control.histories", description=__doc__)
    parser.add_argument("--count", type=int, default=ROUND, help="how many histories")
    parser.add_argument("--stored", type=int, default=0, help="how many more with the real store behind them")
    parser.add_argument("--minutes", type=float, help="go on for so long, round after round")
    parser.add_argument("--seed", type=int, help="of the first round")
    asked = parser.parse_args()
    soak = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
    first = asked.seed if asked.seed is not None else random.SystemRandom().getrandbits(32) if soak else 1
    if asked.minutes is None:
        run(asked.count, first)
        if asked.stored:
            with stored_history() as machine:
                run(asked.stored, first, machine=machine)
        return 0
    end, done = time.monotonic() + 60 * asked.minutes, 0
    while time.monotonic() < end:
        number = first + done // ROUND
        print(f"seed {number}: {done} histories so far", flush=True)
        run(ROUND, number)
        done += ROUND
    print(f"{done} histories, no law broken")
    return 0


if __name__ == "__main__":
    sys.exit(main())
