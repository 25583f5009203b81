"""Training: steps per second of examples with riseml, and of the same containers started by hand."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.common import Bar, BenchContext, Report, interleave, median, select_measures
from benchmarks.engine import (
    PYTORCH,
    RUN,
    BenchEngine,
    make_label_filter,
    make_labels,
    parse_engine_time,
    poll_until,
    run_in_parallel,
)
from benchmarks.home import Home
from benchmarks.peers import find_cache_folder

_SHARE = 0.02
_EPOCH = re.compile(r"^epoch \d+(/\d+)?:")
_RATE = "steps a second"
_KEPT = ("Image", "Cmd", "Entrypoint", "Env", "WorkingDir", "Hostname", "User")
EXAMPLES = Path(__file__).parents[1] / "examples"
RISEML = "riseml"
HAND = "the same containers by hand"


@dataclass(frozen=True, slots=True)
class Training:
    """An example whose rate is measured."""

    example: str  # folder below examples/
    title: str
    jobs: int
    steps: int  # of an epoch
    epochs: int  # the first is not counted
    options: tuple[str, ...] = ()  # of `riseml train`


TRAININGS = (
    Training("ai-toaster", "TensorFlow, asynchronous, a master, 2 workers, a ps", 4, 125, 8),
    Training(
        "pytorch-digits",
        "PyTorch, DistributedDataParallel, a master, 2 workers",
        3,
        16,
        150,
        ("--set", f"train.image={PYTORCH}"),
    ),
)


def run(context: BenchContext) -> Report:
    report = Report()
    data = find_cache_folder() / "data"
    get_data = EXAMPLES / "ai-toaster" / "get_data.py"
    subprocess.run([sys.executable, str(get_data), str(data / "digits")], check=True, capture_output=True)
    report.bars = [_measure(context, data, training, report) for training in TRAININGS]
    return report


def _measure(context: BenchContext, data: Path, training: Training, report: Report) -> Bar:
    project = context.folder / training.example
    shutil.copytree(EXAMPLES / training.example, project, ignore=shutil.ignore_patterns("__pycache__"))
    epochs = max(3, context.rounds(training.epochs, 3))
    with Home(context, f"home-{training.example}", RISEML_BUILD_NETWORK="host", RISEML_DATA=str(data)) as home:
        copies = Copies(home.engine, training)
        _riseml(home, project, copies, training.epochs)  # builds the environment, and records the containers to copy
        contenders = {
            RISEML: lambda turn: _riseml(home, project, copies, epochs),
            HAND: lambda turn: copies.run(context.folder / f"{training.example}-{turn}", epochs),
        }
        results = interleave(context.rounds(3), contenders)
    report.add(training.title, *select_measures(results, _RATE, "steps/s"))
    report.notes.append(
        f"{training.example}: {epochs} epochs of {training.steps} steps, without the first; "
        "measured by the times of the printed lines"
    )
    return _bar(training, results)


def _bar(training: Training, results: Mapping[str, Mapping[str, list[float]]]) -> Bar:
    hand = results[HAND][_RATE]
    ratio = median(results[RISEML][_RATE]) / median(hand)
    spread = (max(hand) - min(hand)) / median(hand)
    figure = f"{100 * (ratio - 1):+.1f} %, at worst -2 % (the runs by hand differ by {100 * spread:.0f} %)"
    cause = f"{training.jobs} processes share {os.cpu_count()} cores: the runs by hand differ more among themselves"
    if spread <= 1 - ratio:
        cause = "riseml's runs are slower by more than the runs by hand differ among themselves"
    return Bar(f"{training.example}: steps a second, within 2 % of by hand", figure, ratio >= 1 - _SHARE, cause)


def _riseml(home: Home, project: Path, copies: Copies, epochs: int) -> Mapping[str, float]:
    training = copies.training
    words = ("train", "-d", "--json", "-p", f"epochs={epochs}", *training.options)
    experiment = str(json.loads(home.run(*words, cwd=project).out.splitlines()[0])["id"])
    if not copies.containers:
        home.wait_jobs(experiment, "RUNNING", training.jobs)
        copies.learn(
            [row["Id"] for row in home.containers(experiment)], home.get(f"/experiments/{experiment}")["output"]
        )
    with home.client() as client, client.stream("GET", f"/experiments/{experiment}/logs", timeout=300) as answer:
        entries = [json.loads(line) for line in answer.iter_lines()]
    if entries[-1]["state"] != "FINISHED":
        raise RuntimeError(f"{training.example} ended {entries[-1]['state']}: {entries[-1]['message']}")
    lines = [(entry["time"], entry["text"]) for entry in entries if entry["type"] == "line"]
    return {_RATE: _rate(lines, training.steps, epochs)}


def _rate(lines: list[tuple[str, str]], steps: int, epochs: int) -> float:
    """Return the steps per second from the end of the first epoch to the end of the last one.

    Raises:
        RuntimeError: the lines are not those of one training from its first epoch to its last one.
    """
    ends = [parse_engine_time(at) for at, text in lines if _EPOCH.match(text)]
    if len(ends) != epochs or ends[-1] <= ends[0]:
        raise RuntimeError(f"the training printed the ends of {len(ends)} epochs, not of {epochs}")
    return steps * (epochs - 1) / (ends[-1] - ends[0])


@dataclass
class Copies:
    """riseml's own containers, started again by hand: the same image, command, variables, addresses and limits."""

    engine: BenchEngine
    training: Training
    containers: dict[str, dict[str, Any]] = field(default_factory=dict)
    code: bytes = b""
    subnet: str = ""
    output: str = ""

    def learn(self, ids: list[str], output: str) -> None:
        """Read from running containers what is needed to create them again."""
        self.output = output
        for identity in ids:
            details = self.engine.api.inspect_container(identity)
            self.containers[details["Config"]["Labels"]["io.riseml.job"]] = details
        network = next(iter(self.containers["master"]["NetworkSettings"]["Networks"]))
        self.subnet = self.engine.api.inspect_network(network)["IPAM"]["Config"][0]["Subnet"]
        pieces, _ = self.engine.api.get_archive(ids[0], "/code")
        self.code = b"".join(pieces)

    def run(self, output: Path, epochs: int) -> Mapping[str, float]:
        """Run one training to its end, and return its steps per second."""
        output.mkdir(parents=True)
        output.chmod(0o777)
        network = self.engine.create_network("training", self.subnet)
        identities = {job: self._create(job, output, epochs, network) for job in self.containers}
        run_in_parallel([partial(self.engine.api.start, identity) for identity in identities.values()])
        self._wait(identities["master"])
        text = self.engine.api.logs(identities["master"], timestamps=True, stderr=False).decode()
        self.engine.remove(make_label_filter("training-job"))
        self.engine.api.remove_network(network)
        shutil.rmtree(output)
        lines = [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in text.splitlines() if " " in line]
        return {_RATE: _rate(lines, self.training.steps, epochs)}

    def _create(self, job: str, output: Path, epochs: int, network: str) -> str:
        details = self.containers[job]
        address = next(iter(details["NetworkSettings"]["Networks"].values()))["IPAMConfig"]["IPv4Address"]
        host = details["HostConfig"] | {"NetworkMode": network}
        host["Mounts"] = [
            mount | ({"Source": str(output)} if mount["Source"] == self.output else {}) for mount in host["Mounts"]
        ]
        config = {name: details["Config"][name] for name in _KEPT}
        config["Cmd"] = [re.sub(r"--epochs \d+", f"--epochs {epochs}", word) for word in config["Cmd"]]
        endpoint = {"IPAMConfig": {"IPv4Address": address}, "Aliases": [config["Hostname"]]}
        config |= {
            "Labels": make_labels("training-job"),
            "HostConfig": host,
            "NetworkingConfig": {"EndpointsConfig": {network: endpoint}},
        }
        name = f"riseml-{RUN}-training-{config['Hostname']}"
        identity = str(self.engine.api.create_container_from_config(config, name)["Id"])
        self.engine.api.put_archive(identity, "/", io.BytesIO(self.code))
        return identity

    def _wait(self, master: str) -> None:
        def ended() -> bool:
            return not self.engine.api.inspect_container(master)["State"]["Running"]

        poll_until("the training by hand has ended", ended, 300, 0.5)
        code = self.engine.api.inspect_container(master)["State"]["ExitCode"]
        if code != 0:
            raise RuntimeError(f"the training by hand ended with exit code {code} on {os.cpu_count()} cores")
