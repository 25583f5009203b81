"""Run many random histories in one process: `python -m tests.unit.control.histories (--count N | --minutes M)`.

Every history follows from two numbers, its seed and its place: `--seed 7 --first 311 --count 1` repeats one. With
HYPOTHESIS_PROFILE=soak every round has another seed, which is printed.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import time

from tests.unit.control.cluster_history import ClusterHistory
from tests.unit.control.history import History
from tests.unit.control.steps import Machine, draw_steps, find_rules, play, shorten
from tests.unit.control.stored import stored_history
from tests.unit.control.team_history import TeamHistory

STEPS = 20
ROUND = 500


def run(count: int, seed: int, *, first: int = 0, shrink: bool = True, machine: type[Machine] = History) -> None:
    """Run this many histories; the same seed gives the same histories.

    Raises:
        AssertionError: a law was broken; its notes are the shortest history that breaks it.
    """
    rules = find_rules(machine)
    for place in range(first, first + count):
        steps = draw_steps(rules, random.Random(f"{seed}/{place}"), STEPS)
        try:
            play(machine, rules, steps)
        except Exception as error:
            found = shorten(machine, rules, steps) if shrink else steps
            title = f"seed {seed}, history {place}, {len(found)} of its {len(steps)} steps:"
            error.add_note("\n".join([title, *map(str, found)]))
            raise


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.unit.control.histories", description=__doc__)
    parser.add_argument("--count", type=int, default=ROUND, help="how many histories")
    parser.add_argument("--first", type=int, default=0, help="the place of the first one")
    parser.add_argument("--stored", type=int, default=0, help="how many more with the real store behind them")
    parser.add_argument("--clusters", type=int, default=0, help="how many more on clusters with queues of their own")
    parser.add_argument("--teams", type=int, default=0, help="how many more on a team's server, with quotas")
    parser.add_argument("--minutes", type=float, help="go on for so long, round after round")
    parser.add_argument("--seed", type=int, help="of the first round")
    asked = parser.parse_args()
    gc.disable()  # a history leaves no cycle behind
    soak = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
    seed = asked.seed if asked.seed is not None else random.SystemRandom().getrandbits(32) if soak else 1
    if asked.minutes is None:
        run(asked.count, seed, first=asked.first)
        run(asked.clusters, seed, first=asked.first, machine=ClusterHistory)
        run(asked.teams, seed, first=asked.first, machine=TeamHistory)
        if asked.stored:
            with stored_history() as machine:
                run(asked.stored, seed, machine=machine)
        return 0
    end, done = time.monotonic() + 60 * asked.minutes, 0
    while time.monotonic() < end:
        print(f"seed {seed + done // ROUND}: {done} histories so far", flush=True)
        run(ROUND, seed + done // ROUND)
        run(ROUND // 5, seed + done // ROUND, machine=ClusterHistory)
        run(ROUND // 5, seed + done // ROUND, machine=TeamHistory)
        done += ROUND
    print(f"{done} histories, no law broken")
    return 0


if __name__ == "__main__":
    sys.exit(main())
