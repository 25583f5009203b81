"""`make chaos`: inject every fault on each executor, print the table, write the JSON; exit code 1 if a row is wrong."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console

from tests.chaos.catalogue import all_faults
from tests.chaos.ledger import Tally
from tests.chaos.sites import Fault, Site
from tests.chaos.table import LEAST_INJECTIONS, LEAST_KINDS, WIDTH, Rows, print_table, read_json, sum_rows, write_json
from tests.support.stores import make_new_store

RESULT = Path(__file__).parents[2] / "docs" / "chaos.json"
_THREADS = 6  # faults injected at the same time


def main() -> int:
    """Inject the selected faults, write and print the results, and return the exit code."""
    arguments = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    chosen = tuple(fault for fault in all_faults() if _is_selected(fault, arguments.fault))
    folder = Path(tempfile.mkdtemp(prefix="chaos-", dir="/tmp"))  # a short path, because it holds sockets
    folder.chmod(0o755)
    known = (
        read_json(arguments.json) if arguments.fault and arguments.json.exists() else {}
    )  # a partial run replaces its rows only
    rows: Rows = {}
    for rows in _inflict_faults(chosen, folder):
        write_json(sort_rows({**known, **rows}), arguments.json)
    print_table(sort_rows(rows))
    clean = all(tally.clean for tallies in rows.values() for tally in tallies.values())
    enough = sum_rows(rows).injected >= LEAST_INJECTIONS and len(rows) >= LEAST_KINDS
    if clean:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"the homes of the servers are kept in {folder}", file=sys.stderr)
    return 0 if clean and (enough or arguments.fault) else 1


def sort_rows(rows: Rows) -> Rows:
    """Return the rows in the order of the catalogue, without those that are no longer in it."""
    return {fault.name: rows[fault.name] for fault in all_faults() if fault.name in rows}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("fault", nargs="*", help="inject only faults whose name contains one of these words")
    parser.add_argument("--json", type=Path, default=RESULT, help="where the result is written")
    return parser


def _is_selected(fault: Fault, words: list[str]) -> bool:
    return not words or any(word in fault.name for word in words)


def _inflict_faults(faults: tuple[Fault, ...], folder: Path) -> Iterator[Rows]:
    """Inject several faults at a time. After each one, print a line on standard error and give the complete rows."""
    sites = {
        "docker": Site(folder, os.environ["DOCKER_HOST"]),
        "process": Site(folder, None),
        "slurm": Site(folder, None),
    }
    found: dict[str, dict[str, Tally]] = {fault.name: {} for fault in faults}
    console = Console(stderr=True, width=WIDTH, highlight=False)
    make_new_store()  # once: several threads cannot migrate at the same time
    with ThreadPoolExecutor(_THREADS) as pool:
        jobs = {
            pool.submit(_inflict_timed, fault, sites[where]): (fault, where)
            for fault in faults
            for where in fault.where
        }
        try:
            for done, job in enumerate(as_completed(jobs), start=1):
                fault, where = jobs[job]
                tally, seconds = job.result()
                found[fault.name][where] = tally
                word = "right" if tally.clean else "WRONG"
                lines = [f"{done:3}/{len(jobs)} {word} {where:7} {seconds:4.0f} s  {fault.name}", *tally.notes]
                console.print(*lines, sep="\n", soft_wrap=True, markup=False)
                yield {
                    fault.name: {where: found[fault.name][where] for where in fault.where}
                    for fault in faults
                    if len(found[fault.name]) == len(fault.where)
                }
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # the running faults still clean up


def _inflict_timed(fault: Fault, site: Site) -> tuple[Tally, float]:
    """Inject one fault, and return its tally and the seconds that it took; an exception makes a wrong row."""
    begun = time.monotonic()
    try:
        tally = fault.inflict(site)
    except Exception:  # noqa: BLE001  # the table reports every error
        tally = Tally(notes=(traceback.format_exc(),))
    return tally, time.monotonic() - begun


if __name__ == "__main__":
    sys.exit(main())
