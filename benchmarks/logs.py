"""Logs: one job's lines, read live by `docker logs -f` and by riseml; then a million lines, then twenty readers."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.common import (
    Bar,
    BenchContext,
    Measure,
    Report,
    RunOnce,
    bar_at_least,
    format_value,
    interleave,
    median,
    print_progress,
)
from benchmarks.engine import BASE, EngineEvents
from benchmarks.gang import ByHand, make_project
from benchmarks.home import Home, read_memory

_LINES = 250_000
_MANY = 1_000_000
_READERS = 20
_EACH = 25_000
_SHARE = 70.0  # percent
_MOST_MEMORY = 150.0  # MiB
_RATE = "lines a second"
_LOST = "lost"
_SERVER = "the server's memory"
_CLIENT = "the reader's memory"
_WHOLE = "all lines once and in order"
DOCKER = "docker logs -f"
TRAIN = "riseml train"
LOGS = "riseml logs -f"
_MARK = b" of the run: "
_NUMBER = re.compile(rb"step (\d+) of")
_WHY_LOST = "an Engine before 23 ends the stream when the container ends, even if the reader has not read all of it"
_CAUSE = "Python parses and stores the engine's frames one by one, and server and reader share the same cores"


@dataclass(slots=True)
class Reader:
    """Reads a pipe to its end, and records when the last wanted line arrived."""

    expected: int  # lines
    chunks: list[bytes] = field(default_factory=list)
    received: int = 0  # lines
    last_at: float = float("nan")  # seconds since 1970
    peak: float = 0.0  # most memory of the process that writes to the pipe, in MiB

    def read_output(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None, "it has a pipe"
        measured_at = 0.0
        tail = b""
        while chunk := os.read(process.stdout.fileno(), 1 << 20):
            self.chunks.append(chunk)
            fresh = (tail + chunk).count(_MARK)
            tail = (tail + chunk)[1 - len(_MARK) :]
            self.received += fresh
            if fresh:
                self.last_at = time.time()
            if time.monotonic() > measured_at + 0.1:
                measured_at = time.monotonic()
                self.peak = max(self.peak, read_memory(process.pid, "VmHWM"))
        process.wait()

    def rate(self, begun: float) -> float:
        """Return the lines per second from `begun`, the start of the job in seconds since 1970, to the last line."""
        return self.received / (self.last_at - begun)

    def is_complete(self) -> bool:
        """Return whether every line came once and in order."""
        numbers = [int(number) for number in _NUMBER.findall(b"".join(self.chunks))]
        return numbers == list(range(1, self.expected + 1))


def run(context: BenchContext) -> Report:
    report = Report()
    count = context.rounds(_LINES, _LINES // 10)
    with Home(context) as home:
        events = EngineEvents(home.engine)
        project = make_project(context, _train(count))
        network = home.engine.create_network("logs")
        contenders: dict[str, RunOnce] = {
            DOCKER: lambda turn: _docker(ByHand(home.engine, "logs-jobs"), network, count),
            TRAIN: lambda turn: _riseml(home, events, project, count, detached=False),
            LOGS: lambda turn: _riseml(home, events, project, count, detached=True),
        }
        results = interleave(context.rounds(3), contenders)
        many = context.rounds(_MANY, count)
        print_progress(f"  {many:,} lines")
        long = _riseml(home, events, make_project(context, _train(many), "long"), many, detached=True)
        home.engine.api.remove_network(network)
        each = context.rounds(_EACH, _EACH // 10)
        crowd, whole = _crowd(home, make_project(context, _train(each, wait=True), "crowd"), each)
        events.close()
    report.add("live, one job", *(Measure(name, tuple(kinds[_RATE]), "count") for name, kinds in results.items()))
    for name in (_SERVER, _CLIENT):
        report.add(f"{name}, at its highest", *(Measure(by, tuple(results[by][name]), "MiB") for by in (TRAIN, LOGS)))
    report.add(f"{LOGS}, {many:,} lines", Measure("lines a second", (long[_RATE],), "count"))
    report.add(f"{LOGS}, {many:,} lines: memory", *(Measure(name, (long[name],), "MiB") for name in (_SERVER, _CLIENT)))
    report.add(f"{_READERS} readers of {each:,} lines at once", *crowd)
    cut = sum(lost > 0 for lost in results[DOCKER][_LOST])
    report.notes.append(f"docker logs -f itself lost lines in {cut} of {len(results[DOCKER][_LOST])} runs; {_WHY_LOST}")
    report.bars = [*_bars(results, long, many), _judge_crowd(crowd[1].median, whole)]
    return report


def _bars(results: Mapping[str, Mapping[str, list[float]]], long: Mapping[str, float], many: int) -> list[Bar]:
    limit = median(results[DOCKER][_RATE])
    bars = [
        bar_at_least(
            f"{name}: share of docker logs -f", 100 * median(results[name][_RATE]) / limit, _SHARE, cause=_CAUSE
        )
        for name in (TRAIN, LOGS)
    ]
    highest = max(long[_SERVER], long[_CLIENT])
    bars.append(
        Bar(
            f"memory is bounded, {many:,} lines",
            f"{format_value(highest, 'MiB')} of {_MOST_MEMORY:.0f} MiB",
            min(long[_SERVER], long[_CLIENT]) > 0 and highest <= _MOST_MEMORY,  # 0: it ended unmeasured
        )
    )
    runs = [long[_WHOLE], *results[TRAIN][_WHOLE], *results[LOGS][_WHOLE]]
    figure = f"{sum(runs):.0f} of {len(runs)} runs have all lines in order, one of them {many:,}"
    bars.append(Bar("no loss, no line twice", figure, all(runs)))
    return bars


def _judge_crowd(peak: float, whole: int) -> Bar:
    figure = f"{whole} have all lines in order, the server at {format_value(peak, 'MiB')}"
    return Bar(f"{_READERS} readers at once", figure, whole == _READERS and 0 < peak <= 2 * _MOST_MEMORY)


def _script(count: int) -> str:
    return f"seq -f 'step %.0f of the run: loss 0.1234, accuracy 0.9876, 0.25 s' {count}"


def _train(count: int, *, wait: bool = False) -> dict[str, object]:
    begin = "while [ ! -e /output/go ]; do sleep 0.05; done\n" if wait else ""
    return {"image": BASE, "resources": {"cpus": 0.05, "mem": "64MiB"}, "run": begin + _script(count)}


def _docker(hand: ByHand, network: str, count: int) -> Mapping[str, float]:
    begun = hand.start({"job": _script(count)}, network)["job"]
    reader = Reader(count)
    with subprocess.Popen(
        ["docker", "-H", hand.engine.url, "logs", "-f", begun], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        reader.read_output(process)
    rate = reader.rate(hand.engine.last_start([begun]))
    hand.remove()
    return {_RATE: rate, _LOST: count - reader.received}


def _riseml(home: Home, events: EngineEvents, project: Path, count: int, *, detached: bool) -> Mapping[str, float]:
    """Run `train` in the foreground, or `train -d` and then `logs -f`."""
    home.run("status")  # starts the server
    before = {row["Id"] for row in home.engine.api.containers(all=True, filters={"label": _server_label(home)})}
    words = ("logs", home.train(project)) if detached else ("train",)
    process = home.spawn(*words, cwd=project)
    reader = Reader(count)
    with process, ThreadPoolExecutor(1) as pool:
        reading = pool.submit(reader.read_output, process)
        job = _find_new_container(home, before)
        with _sample_memory(home) as peaks:
            reading.result()
    return {
        _RATE: reader.rate(events.wait(job, "start")),
        _LOST: count - reader.received,
        _WHOLE: reader.is_complete(),
        _SERVER: max(peaks),
        _CLIENT: reader.peak,
    }


def _server_label(home: Home) -> str:
    return f"io.riseml.server={home.server()['id']}"


def _find_new_container(home: Home, before: set[str]) -> str:
    pause = threading.Event()
    while True:
        for row in home.engine.api.containers(all=True, filters={"label": _server_label(home)}):
            if row["Id"] not in before:
                return str(row["Id"])
        pause.wait(0.05)


@contextmanager
def _sample_memory(home: Home) -> Iterator[list[float]]:
    """Measure the server's memory ten times a second until the block ends."""
    peaks = [read_memory(home.server()["pid"])]
    over = threading.Event()

    def sample() -> None:
        while not over.wait(0.1):
            peaks.append(read_memory(home.server()["pid"]))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield peaks
    finally:
        over.set()
        thread.join()


def _crowd(home: Home, project: Path, each: int) -> tuple[list[Measure], int]:
    """Measure twenty readers that start before the first line, and count those that get all lines in order."""
    experiment = home.train(project)
    home.wait_jobs(experiment, "RUNNING", 1)
    output = Path(home.get(f"/experiments/{experiment}")["output"])
    readers = [Reader(each) for _ in range(_READERS)]
    processes = [home.spawn("logs", experiment) for _ in readers]
    with ThreadPoolExecutor(_READERS) as pool, _sample_memory(home) as peaks:
        reading = [pool.submit(reader.read_output, process) for reader, process in zip(readers, processes, strict=True)]
        threading.Event().wait(3)
        begun = time.time()
        (output / "go").touch()
        for future in reading:
            future.result()
    seconds = tuple(reader.last_at - begun for reader in readers)
    measures = [Measure("the reader has all of it", seconds), Measure("the server's memory", (max(peaks),), "MiB")]
    return measures, sum(reader.is_complete() for reader in readers)
