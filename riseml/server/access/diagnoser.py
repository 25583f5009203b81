"""Why experiments make no progress: their stacks are read a few times, and the answer is kept.

The answer is in the server's home and, as `diagnosis.json` and `diagnosis.txt`, in the output of the experiment. A host
whose files the server does not see gets the two files when the experiment ends, with its capsule.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path

from riseml import wire
from riseml.base.errors import Conflict, RisemlError
from riseml.base.names import JobName, experiment_name
from riseml.base.states import TERMINAL, JobDuty, State
from riseml.diagnosis.report import list_diagnosis_files, show_diagnosis
from riseml.diagnosis.stacks import ProcessStacks
from riseml.diagnosis.verdicts import RunFacts, StallDiagnosis, diagnose
from riseml.files.storage.owned_folders import open_owned_folder, replace_file
from riseml.model import Experiment, Job
from riseml.planning.launch import output_folder
from riseml.server.access.job_stacks import JobStacks, StackRequest, read_stacks
from riseml.server.clock import now
from riseml.server.hosts.host_set import HostSet
from riseml.store.diagnoses import DiagnosisStore
from riseml.store.samples.sample_rows import AMOUNTS, Span
from riseml.store.samples.sample_store import SampleStore

_SAMPLES = 3
_MOST_TRIES = 6  # looks, with those at which no job could be read
_PAUSE = 3.0  # seconds between two of them
_MOST_AT_ONCE = 2  # experiments that are looked at
_RECENT = 60  # seconds: older samples of use say nothing
_NO_SILENCE: Mapping[JobName, float] = {}

log = logging.getLogger(__name__)


class Diagnoser:
    """Diagnoses experiments. Safe from many threads.

    Args:
        hosts: run the jobs.
        samples: what jobs use.
        diagnoses: the server's own copies.
        pause: seconds between two looks at the stacks.
    """

    def __init__(self, hosts: HostSet, samples: SampleStore, diagnoses: DiagnosisStore, pause: float = _PAUSE) -> None:
        self._hosts = hosts
        self._samples = samples
        self._diagnoses = diagnoses
        self._pause = pause
        self._turns = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._never = threading.Event()

    def begin(self, experiment: Experiment, silent: Mapping[JobName, float]) -> Future[StallDiagnosis]:
        """Diagnose an experiment that makes no progress, in a thread of its own.

        Args:
            experiment: as its record was.
            silent: seconds since the last sign of progress of each job.
        """
        answer: Future[StallDiagnosis] = Future()

        def work() -> None:
            try:
                answer.set_result(self._diagnose(experiment, silent, by_stall=True)[0])
            except Exception as error:
                log.exception("experiment %s could not be diagnosed", experiment.number)
                answer.set_exception(error)

        threading.Thread(target=work, name=f"diagnose-{experiment.id}", daemon=True).start()
        return answer

    def diagnose(self, experiment: Experiment) -> wire.DiagnosisView:
        """Diagnose an experiment at once. Takes some seconds.

        Raises:
            Conflict: it runs no job.
        """
        if not any(job.state is State.RUNNING for job in experiment.gang):
            name = experiment_name(experiment.number, experiment.sub)
            raise Conflict(f"{name} runs no job", f"`riseml status {name}` says what became of its jobs")
        return self._diagnose(experiment, _NO_SILENCE, by_stall=False)[1]

    def find_last(self, experiment: Experiment) -> wire.DiagnosisView | None:
        """Return the last diagnosis of an experiment; None: there is none."""
        return self._diagnoses.load_diagnosis(experiment.id)

    def _diagnose(
        self, experiment: Experiment, silent: Mapping[JobName, float], *, by_stall: bool
    ) -> tuple[StallDiagnosis, wire.DiagnosisView]:
        with self._turns:
            at = now()
            begun = time.monotonic()
            samples, unread = self._read_samples(experiment)
            diagnosis = diagnose(samples, self._find_facts(experiment, silent, unread, at))
        view = show_diagnosis(
            diagnosis,
            identity=experiment_name(experiment.number, experiment.sub),
            time=f"{at:%Y-%m-%dT%H:%M:%S.%fZ}",
            attempt=max(job.attempt for job in experiment.gang),
            by_stall=by_stall,
            seconds=time.monotonic() - begun,
        )
        self._keep(experiment, view)
        return diagnosis, view

    def _read_samples(self, experiment: Experiment) -> tuple[list[Sequence[ProcessStacks]], dict[str, str]]:
        """Return the processes of all jobs a few times, and why those of a job could not be read even once."""
        samples: list[Sequence[ProcessStacks]] = []
        unread: dict[str, str] = {}
        title = f"{experiment_name(experiment.number, experiment.sub)}."
        jobs = [job for job in experiment.gang if job.state is State.RUNNING and job.part is not JobDuty.WATCHES]
        for answer in self._look_repeatedly(experiment, jobs):
            if isinstance(answer, RisemlError):
                unread |= dict.fromkeys((str(job.name) for job in jobs), answer.message)
                continue
            unread |= {stacks.title.removeprefix(title): stacks.trouble for stacks in answer if stacks.trouble}
            samples.append([process for stacks in answer for process in stacks.processes])
        was_read = {process.job for sample in samples for process in sample}
        return samples, {job: why for job, why in unread.items() if job not in was_read}

    def _look_repeatedly(
        self, experiment: Experiment, jobs: Sequence[Job]
    ) -> Iterator[Sequence[JobStacks] | RisemlError]:
        """Yield what each look shows, until enough of them have shown something."""
        wanted_samples = _SAMPLES
        for attempt in range(_MOST_TRIES):
            if attempt:
                self._never.wait(self._pause)
            answer = self._try_read(experiment, jobs)
            yield answer
            wanted_samples -= not isinstance(answer, RisemlError)
            if not wanted_samples:
                return

    def _try_read(self, experiment: Experiment, jobs: Sequence[Job]) -> Sequence[JobStacks] | RisemlError:
        try:
            return read_stacks(self._hosts, experiment, jobs, StackRequest())
        except RisemlError as error:
            return error

    def _find_facts(
        self, experiment: Experiment, silent: Mapping[JobName, float], unread: Mapping[str, str], at: datetime
    ) -> RunFacts:
        memory: dict[str, tuple[float, float]] = {}
        traffic: dict[str, float] = {}
        gpus: dict[str, float] = {}
        for job in experiment.gang:
            use = self._read_use(experiment, job, int(at.timestamp()))
            if {"mem_used", "mem_total"} <= use.keys():
                memory[job.name] = (use["mem_used"], use["mem_total"])
            if {"net_in", "net_out"} <= use.keys():
                traffic[job.name] = use["net_in"] + use["net_out"]
            if "gpu" in use:
                gpus[job.name] = use["gpu"]
        return RunFacts(
            disk_free=self._measure_disk(experiment),
            memory=memory,
            traffic=traffic,
            gpus=gpus,
            absent=self._find_absent(experiment),
            unread=unread,
            silent={str(name): seconds for name, seconds in silent.items()},
        )

    def _read_use(self, experiment: Experiment, job: Job, moment: int) -> Mapping[str, float]:
        """Return what a job used last, as far as that is known and new."""
        try:
            rows = self._samples.read_rows(experiment.id, job.name, Span(moment - _RECENT, moment + 1))
        except OSError:
            return {}
        rows = [row for row in rows if row.attempt == job.attempt]
        if not rows or job.state is not State.RUNNING:
            return {}
        return {name: value for name, value in zip(AMOUNTS, rows[-1].amounts, strict=True) if not math.isnan(value)}

    def _find_absent(self, experiment: Experiment) -> dict[str, str]:
        """Return the jobs that others may wait for and that do not run, or cannot be seen."""
        observed = self._hosts.last_seen()
        absent: dict[str, str] = {}
        for job in experiment.gang:
            host = None if job.host is None else observed.get(job.host)
            if job.part is JobDuty.WATCHES:
                continue
            if job.state in TERMINAL:
                code = f" with exit code {job.exit_code}" if job.exit_code is not None else ""
                absent[job.name] = f"has ended{code}"
            elif job.state is not State.RUNNING:
                absent[job.name] = f"is {job.state.value}"
            elif host is not None and host.silent_since is not None:
                absent[job.name] = f"runs on {job.host}, which does not answer"
        return absent

    def _find_root(self, experiment: Experiment) -> Path | None:
        """Return the root of outputs, if the server sees the output of an experiment there."""
        root = self._hosts.roots.output
        hosts = [job.host for job in experiment.gang if job.host is not None]
        is_own = not experiment.reads and all(self._hosts.is_this_machine(host) for host in hosts)
        return Path(root) if isinstance(root, str) and is_own else None

    def _measure_disk(self, experiment: Experiment) -> int | None:
        root = self._find_root(experiment)
        try:
            disk = None if root is None else os.statvfs(root / output_folder(experiment))
        except OSError:
            return None
        return None if disk is None else disk.f_bavail * disk.f_frsize

    def _keep(self, experiment: Experiment, view: wire.DiagnosisView) -> None:
        """Keep a diagnosis in the home and, where the server sees it, in the output."""
        try:
            self._diagnoses.save_diagnosis(experiment.id, view)
        except (OSError, RisemlError) as error:
            log.warning("the diagnosis of %s is not kept: %s", view["id"], error)
        root = self._find_root(experiment)
        if root is None:
            return
        try:
            with open_owned_folder(root, output_folder(experiment), experiment.owner) as opened:
                for name, content in list_diagnosis_files(view):
                    replace_file(opened, name, content, experiment.owner)
        except (OSError, RisemlError) as error:
            log.warning("the diagnosis of %s is not in its output: %s", view["id"], error)
