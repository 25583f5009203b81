"""`python -m benchmarks [--quick] [--json FILE] [BENCH ...]`: run benches, print their tables, write figures to FILE.

`python -m benchmarks --table [--json FILE]` runs no bench. It writes the figures in FILE into benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from docker.errors import DockerException, ImageNotFound

from benchmarks import machine, pace, peers, readme
from benchmarks.common import Bar, BenchContext, Report, format_bars, format_report, print_progress
from benchmarks.engine import BASE, BenchEngine

BENCHES = (
    *("start", "end", "whole_run", "cli", "logs", "reports", "searches", "stopping", "sync", "code"),
    *("training", "scale", "placement", "process", "slurm", "data", "encryption", "web", "team"),
)
_DEFAULT = Path("build/benchmarks.json")
_RUNS = "the bench itself runs to its end"


def main() -> int:
    arguments = _parse()
    if arguments.table:
        readme.write_tables(json.loads(arguments.json.read_text(encoding="utf-8")))
        print(f"wrote {readme.README.name} from {arguments.json}")
        return 0
    url = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    engine = BenchEngine(url)
    if problem := _find_problem(engine):
        print(f"error: {problem}\nhint: `export DOCKER_HOST=$(scripts/engine/up)`", file=sys.stderr)
        return 2
    machine.compile_bytecode()
    peers.make_compose()
    facts = machine.collect_facts(engine) | {"compose": peers.compose_version(), "torchx": peers.torchx_version()}
    starts = [pace.measure_start()]
    folder = Path(tempfile.mkdtemp(prefix="riseml-bench-"))
    begun = time.monotonic()
    try:
        context = BenchContext(url, folder, peers.make_environment(), arguments.quick)
        reports = {name: _measure(name, context) for name in arguments.benches or BENCHES}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    starts.append(pace.measure_start())
    for report in reports.values():
        report.bars = [*pace.judge_at_pace(report.bars, min(starts))]
    facts |= {
        "python_start": min(starts),
        "minutes": round((time.monotonic() - begun) / 60, 1),
        "load_after": os.getloadavg()[0],
        "quick": arguments.quick,
    }
    print("\n".join(line for name, report in reports.items() for line in (*format_report(name, report), "")))
    print("\n".join(format_bars(reports)))
    print(f"\n{facts['minutes']} minutes on {facts['cpus']} cores, load before: {facts['load_before']:.1f}")
    _write_figures(
        arguments.json, {"machine": facts, "benches": {name: report.to_json() for name, report in reports.items()}}
    )
    return _judge(reports, quick=arguments.quick)


def _find_problem(engine: BenchEngine) -> str:
    """Return why the benches cannot use the engine, or an empty string."""
    try:
        engine.image_id(BASE)
    except ImageNotFound:
        return f"the engine at {engine.url} does not have the image {BASE}"
    except DockerException as error:
        return f"no engine answers at {engine.url}: {error}"
    return ""


def _judge(reports: Mapping[str, Report], *, quick: bool) -> int:
    """Return the exit code: 1 when a bench failed or a bar falls short. In a smoke test only a failed bench counts."""
    short = [bar for report in reports.values() for bar in report.bars if bar.passed is False]
    return 1 if any(bar.requirement == _RUNS or not quick for bar in short) else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=f"one of {', '.join(BENCHES)}; default: all")
    parser.add_argument("--quick", action="store_true", help="smoke test: few rounds with small sizes")
    parser.add_argument("--json", type=Path, default=_DEFAULT, help=f"file of the figures; default: {_DEFAULT}")
    parser.add_argument("--table", action="store_true", help="run no bench; write the last figures into README.md")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.benches) - set(BENCHES)):
        parser.error(f"there is no bench {', '.join(unknown)}")
    return arguments


def _measure(name: str, context: BenchContext) -> Report:
    """Run one bench in its own folder, and return its report. If the bench fails, the report has a bar that says so."""
    folder = context.folder / name
    folder.mkdir()
    begun = time.monotonic()
    print_progress(f"{name}:")
    try:
        report: Report = import_module(f"benchmarks.{name}").run(
            BenchContext(context.engine, folder, context.bench_python, context.quick)
        )
    except Exception as error:  # noqa: BLE001  # the other benches still run
        traceback.print_exc()
        why = str(error).splitlines() or [type(error).__name__]
        report = Report(bars=[Bar(_RUNS, "it failed", passed=False, cause=f"the bench itself failed: {why[0]}")])
    finally:
        _clean_up(context.engine, folder)
    print_progress(f"{name}: {time.monotonic() - begun:.0f} s")
    return report


def _clean_up(engine: str, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    try:
        BenchEngine(engine).clean_up()
    except (DockerException, OSError) as error:
        print_progress(f"cleaning up failed, containers or networks may remain on the engine: {error}")


def _write_figures(path: Path, figures: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(f"figures: {path}")


if __name__ == "__main__":
    sys.exit(main())
