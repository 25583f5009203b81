"""What one set of 1,000 trials costs the server: choosing, storing and telling each of them, without running any."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from riseml.spec.config.types import SearchMethod
from riseml.store.database import Database
from tests.support.searches import DROPOUT, EPOCHS, LAYERS, LR, UNITS, SearchRig, make_search

TRIALS = 1_000


def measure(folder: Path, method: SearchMethod, trials: int) -> tuple[float, float]:
    """Return the seconds of processor time of a whole set, and of its last trial."""
    database = Database(f"sqlite:///{folder}/{method.value}.db")
    rig = SearchRig(database, make_search(method, trials), (LR, UNITS, DROPOUT, LAYERS, EPOCHS))
    rig.loop.run_pass()
    total = last = 0.0
    for number in range(1, trials + 1):
        rig.metrics.reports = [(rig.trial(number).experiment, 1, 1 / number)]
        rig.end(number)
        begun = time.process_time()
        rig.loop.run_pass()
        last = time.process_time() - begun
        total += last
    made = len(rig.record().trials)
    database.close()
    if made != trials:
        raise AssertionError(f"{made} trials were made, not {trials}")
    return total, last


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else TRIALS
    for method in (SearchMethod.RANDOM, SearchMethod.TPE, SearchMethod.CMA_ES):
        with TemporaryDirectory() as folder:
            total, last = measure(Path(folder), method, trials)
        print(f"{method.value}: {trials:,} trials {total:.1f} s, the last one {last * 1000:.0f} ms", flush=True)


if __name__ == "__main__":
    main()
