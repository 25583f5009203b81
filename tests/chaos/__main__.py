"""`make chaos`: every fault on every executor that has it, the table, the JSON; exit code 1 when something is wrong."""

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
from tests.chaos.table import LEAST_INJECTIONS, LEAST_KINDS, WIDTH, Rows, print_table, read_json, total, write_json

RESULT = Path(__file__).parents[2] / "docs" / "chaos.json"
_HANDS = 6  # faults at the same time


def main() -> int:
    """Inflict, write down, print, judge."""
    arguments = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    chosen = tuple(fault for fault in all_faults() if _is_chosen(fault, arguments.fault))
    folder = Path(tempfile.mkdtemp(prefix="chaos-", dir="/tmp"))  # short, for the paths of sockets
    folder.chmod(0o755)
    known = read_json(arguments.json) if arguments.fault and arguments.json.exists() else {}  # a part renews its rows
    rows: Rows = {}
    for rows in _inflict(chosen, folder):
        write_json(in_order({**known, **rows}), arguments.json)
    print_table(in_order(rows))
    clean = all(tally.clean for tallies in rows.values() for tally in tallies.values())
    enough = total(rows).injected >= LEAST_INJECTIONS and len(rows) >= LEAST_KINDS
    if clean:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"the homes of the servers are kept in {folder}", file=sys.stderr)
    return 0 if clean and (enough or arguments.fault) else 1


def in_order(rows: Rows) -> Rows:
    """As in the catalogue; what is no longer in it is dropped."""
    return {fault.name: rows[fault.name] for fault in all_faults() if fault.name in rows}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("fault", nargs="*", help="words of the faults that are wanted; all without any")
    parser.add_argument("--json", type=Path, default=RESULT, help="where the result is written")
    return parser


def _is_chosen(fault: Fault, words: list[str]) -> bool:
    return not words or any(word in fault.name for word in words)


def _inflict(faults: tuple[Fault, ...], folder: Path) -> Iterator[Rows]:
    """Some at a time; after each, the rows that are complete, and a line on standard error."""
    sites = {"docker": Site(folder, os.environ["DOCKER_HOST"]), "process": Site(folder, None)}
    found: dict[str, dict[str, Tally]] = {fault.name: {} for fault in faults}
    console = Console(stderr=True, width=WIDTH, highlight=False)
    with ThreadPoolExecutor(_HANDS) as hands:
        jobs = {hands.submit(_timed, fault, sites[where]): (fault, where) for fault in faults for where in fault.where}
        try:
            for done, job in enumerate(as_completed(jobs), start=1):
                fault, where = jobs[job]
                tally, seconds = job.result()
                found[fault.name][where] = tally
                word = "right" if tally.clean else "WRONG"
                told = [f"{done:3}/{len(jobs)} {word} {where:7} {seconds:4.0f} s  {fault.name}", *tally.notes]
                console.print(*told, sep="\n", soft_wrap=True, markup=False)
                yield {
                    fault.name: {where: found[fault.name][where] for where in fault.where}
                    for fault in faults
                    if len(found[fault.name]) == len(fault.where)
                }
        finally:
            hands.shutdown(wait=False, cancel_futures=True)  # who is interrupted still cleans up what is under way


def _timed(fault: Fault, site: Site) -> tuple[Tally, float]:
    """What came of it, and the seconds that it took. A fault that brought the test itself to an end is a wrong row, not
    the end of the table.
    """
    begun = time.monotonic()
    try:
        tally = fault.inflict(site)
    except Exception:  # noqa: BLE001  # whatever it is, it is told in the table
        tally = Tally(notes=(traceback.format_exc(),))
    return tally, time.monotonic() - begun


if __name__ == "__main__":
    sys.exit(main())
