"""Builds of environments on one engine: each install step runs in a container of its own, and its image is kept.

The container and the network of a build have a name that the server and the environment give. So the next server finds
the step that a killed one has begun, follows its log and goes on from there; what no experiment waits for is removed.
The images of steps have names, too (`riseml/step`): an environment that begins with the same steps goes on from them.
"""

from __future__ import annotations

import hashlib
import logging
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import IO, Any

import docker
from docker.errors import APIError, DockerException

from riseml.base.errors import DiskFull, EngineError, RisemlError, Unreachable, UsageError
from riseml.base.records import dataclass
from riseml.executors.base import BuildRequest, NotThere, Work, WorkReport
from riseml.executors.build_limits import EXCESS_HINTS, BuildLimits
from riseml.executors.capabilities import ListUsed
from riseml.executors.docker import labels
from riseml.executors.docker.engine_disk import EngineDisk
from riseml.executors.docker.helper_container import send_archive
from riseml.executors.docker.helpers import Helpers, remove_container
from riseml.executors.docker.image_names import inspect_image
from riseml.executors.docker.log_stream import read_log_frames, read_missed_frames
from riseml.executors.docker.project_archive import WORKING_FOLDER
from riseml.executors.docker.step_containers import (
    OUT_OF_MEMORY,
    BuildStep,
    image_config,
    list_steps,
    make_host_config,
    step_request,
)
from riseml.executors.environments.build_log import STEP_MARK, BuildLog
from riseml.executors.this_machine.disk_use import FULL_DISK_HINT, FULL_PERCENT
from riseml.executors.transports.engine_client import raise_for_refusal
from riseml.files.archives.project_files import ProjectFiles
from riseml.files.archives.writer import END, pad_content, write_header
from riseml.model import Frame, Image, LogCursor

SAVING = "Saving the image"
"""How the line begins that says what the engine does after a step, where that takes longer than a moment."""

DEFAULT_NETWORK = "default"
"""The setting for which each build gets a network of its own."""

_SAVING_AFTER = 2.0  # seconds of a commit without a line about it
_ENDED_WITH_ENGINE = 137, 143, 255  # exit codes of a container that its engine took along when it stopped
_COMMIT_PATIENCE = 3600.0  # seconds for a commit; the engine sends no answer until the image is there

HoldSteps = Callable[[frozenset[str]], AbstractContextManager[None]]
"""Holds the images of steps by their names."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How the builds of a host are confined."""

    network: str = DEFAULT_NETWORK  # network of the steps: a network of the engine, or a mode such as `host`
    limits: BuildLimits = BuildLimits()


class EnvironmentBuilds:
    """The builds of one server on one engine; several threads use it at the same time.

    Args:
        helpers: the helpers of the server on the engine.
        settings: how they are confined.
    """

    def __init__(self, helpers: Helpers, settings: BuildSettings) -> None:
        self._helpers = helpers
        self._engine = helpers.engine
        self._server = helpers.server
        self._settings = settings
        self._changed = threading.Condition()
        self._busy: set[str] = set()  # names of builds that a thread makes or removes at this moment
        self._left: set[str] = set()  # names of builds that an earlier server has left
        self._requested: frozenset[str] | None = None  # environments that experiments wait for; None: not known yet
        self._steps_guard = threading.Lock()  # guard of the next field; held while the image of a step is removed
        self._steps: Counter[str] = Counter()  # how many builds may go on from the image of a step

    def make_environment(self, request: BuildRequest, base: str, most_mem: int) -> None:
        """Make an environment, or go on where an earlier server has left it.

        Args:
            request: the environment.
            base: the name of its base image at the engine.
            most_mem: MiB that one job without its own limit may use on the host.

        Raises:
            EngineError: a step failed, or the request was cancelled.
            Unreachable: the engine does not answer; a step goes on.
        """
        name = self._name_build(request.image.reference)
        with self._hold_build(name, request), self._engine.api(patient=True) as api:
            if inspect_image(api, request.image.reference) is not None:
                return
            try:
                build = _Build(self._helpers, self._settings, request, name)
                build.run(api, base, most_mem, self._hold_steps)
            except BaseException as error:
                if isinstance(error, EngineError) or not isinstance(error, Unreachable):
                    self._remove_quietly(name)
                raise  # without an answer of the engine, the step goes on, and the next try follows it
            self._remove_quietly(name)

    def remove_step(self, name: str, remove: Callable[[], None]) -> None:
        """Remove the image of an install step by calling `remove`.

        Raises:
            EngineError: a build may go on from it.
        """
        with self._steps_guard:
            if self._steps[name]:
                raise EngineError(f"a build goes on from {name}")
            remove()

    @contextmanager
    def _hold_steps(self, names: frozenset[str]) -> Iterator[None]:
        """Hold the images of the steps of a build, which may go on from each of them."""
        with self._steps_guard:
            self._steps.update(names)
        try:
            yield
        finally:
            with self._steps_guard:
                self._steps.subtract(names)
                self._steps = +self._steps

    def end_unwanted_builds(self, references: frozenset[str], list_used: ListUsed = frozenset) -> None:
        """Remove what an earlier server has left of builds that no experiment waits for, in a thread."""
        requested = frozenset(map(self._name_build, references))
        with self._changed:
            self._requested = requested
            unwanted = self._left - requested - self._busy
            self._busy |= unwanted
        if unwanted:
            threading.Thread(target=self._remove_all, args=(unwanted,), name="end-builds", daemon=True).start()

    def find_forgotten(self, api: docker.APIClient) -> None:
        """Find what an earlier server has left of its builds."""
        filters = {"label": labels.label_filter(labels.BUILD_SERVER, self._server)}
        names = {str(row["Names"][0]).lstrip("/") for row in api.containers(all=True, filters=filters)}
        names |= {str(row["Name"]) for row in api.networks(filters=filters)}
        with self._changed:
            self._left = {name for name in names if name.startswith(self._name_build(""))}
            requested = self._requested
        if requested is not None:
            self._end_left(requested)

    def _end_left(self, requested: frozenset[str]) -> None:
        with self._changed:
            unwanted = self._left - requested - self._busy
            self._busy |= unwanted
        if unwanted:
            self._remove_all(unwanted)

    def _remove_all(self, names: set[str]) -> None:
        for name in names:
            self._remove_quietly(name)
            with self._changed:
                self._busy.discard(name)
                self._changed.notify_all()

    def _remove_quietly(self, name: str) -> None:
        """Remove the container and the network of a build; a failure leaves them to a later call."""
        try:
            with self._engine.api(patient=True) as api:
                remove_container(api, name)
                for row in api.networks(names=[f"^{name}$"]):
                    api.remove_network(row["Id"])
        except (RisemlError, DockerException, OSError) as error:
            log.warning("what is left of the build %s is removed later: %s", name, error)
            with self._changed:
                self._left.add(name)
        else:
            with self._changed:
                self._left.discard(name)

    @contextmanager
    def _hold_build(self, name: str, request: BuildRequest) -> Iterator[None]:
        """Hold a build, so that one thread at a time makes an environment."""
        request.cancellation.attach(self._wake_waiting)
        with self._changed:
            if name in self._busy:
                request.emit("Waiting for another build of the same environment")
            self._changed.wait_for(lambda: name not in self._busy or request.cancellation.asked)
            request.cancellation.check()
            self._busy.add(name)
        try:
            yield
        finally:
            with self._changed:
                self._busy.discard(name)
                self._changed.notify_all()

    def _wake_waiting(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _name_build(self, reference: str) -> str:
        return f"riseml-{self._server[:8]}-build-{reference.rpartition(':')[2]}"


def write_step_files(archive: IO[bytes], image: Image, project: ProjectFiles | None) -> str:
    """Write the project files that the install steps may read as a tar, for the first step.

    Returns the digest of their names, modes and contents, whatever their times are.

    Args:
        archive: the binary file to write to.
        image: the environment; `image.files` are the project files that it may read.
        project: its files; None: it has none.

    Raises:
        EngineError: a file is damaged.
    """
    digest = hashlib.sha256()
    if project is not None and image.files:
        try:
            _copy_step_files(project, frozenset(image.files), archive, digest)
        except UsageError as error:
            raise EngineError(f"the project's files cannot be read: {error.message}", permanent=True) from error
    archive.write(END)
    return digest.hexdigest()


class _Build:
    """One environment that is being made."""

    def __init__(self, helpers: Helpers, settings: BuildSettings, request: BuildRequest, name: str) -> None:
        self._helpers = helpers
        self._engine = helpers.engine
        self._server = helpers.server
        self._settings = settings
        self._request = request
        self._name = name  # name of its container and its network
        self._late = threading.Event()  # set when it has taken longer than a build may take
        self._earlier_lines = request.read_held()

    def run(self, api: docker.APIClient, base: str, most_mem: int, hold_steps: HoldSteps) -> None:
        """Run the steps that have no image yet; no image of a step is removed meanwhile (`hold_steps`)."""
        image = self._request.image
        with tempfile.TemporaryFile() as archive, ExitStack() as stack:
            files = write_step_files(archive, image, self._request.project)
            first = str(api.inspect_image(base)["Id"])
            steps = list(list_steps(image, first, files))
            stack.enter_context(hold_steps(frozenset(step.image for step in steps)))
            cached = next((n for n in range(len(steps) - 1, 0, -1) if inspect_image(api, steps[n - 1].image)), 0)
            if cached:
                self._emit_cached(steps[:cached])
            mem = self._settings.limits.find_most_mem(most_mem)
            host_config = make_host_config(mem, self._ensure_network(api))
            watchdog = threading.Timer(self._settings.limits.seconds, self._end_late)
            watchdog.daemon = True
            watchdog.start()
            try:
                for step in steps[cached:]:
                    below = first if step is steps[0] else steps[steps.index(step) - 1].image
                    self._request.cancellation.check()
                    self._run_step(api, step, below, host_config, archive if step is steps[0] else None)
            finally:
                watchdog.cancel()

    def _emit_cached(self, steps: list[BuildStep]) -> None:
        """Name the steps whose images an earlier build has left, unless an earlier server did."""
        for step in steps:
            if f"{STEP_MARK}{step.line}".partition("\n")[0] not in self._earlier_lines:
                self._request.emit(f"{STEP_MARK}{step.line}")
                self._request.emit("An earlier build has made this step")

    def _run_step(
        self, api: docker.APIClient, step: BuildStep, below: str, host_config: dict[str, Any], archive: IO[bytes] | None
    ) -> None:
        config = dict(api.inspect_image(below)["Config"] or {})
        passed = self._find_left(api, step)
        if passed is None:
            passed = 0
            remove_container(api, self._name)
            if step.line:
                self._request.emit(f"{STEP_MARK}{step.line}")
            api.create_container_from_config(step_request(step, below, self._server, config, host_config), self._name)
            if archive is not None:
                archive.seek(0)
                send_archive(api, self._name, "/", iter(lambda: archive.read(1 << 16), b""))
            self._start(api, step)
        if step.line:
            install = self._request.image.install
            self._request.report(WorkReport(Work.INSTALL, step.line, step.number, len(install)))
        self._follow(passed)
        self._judge_end(api, step)
        self._commit(api, step, config)
        remove_container(api, self._name)

    def _find_left(self, api: docker.APIClient, step: BuildStep) -> int | None:
        """Return how many lines of this step an earlier server has passed on; None: none has begun it."""
        try:
            container = api.inspect_container(self._name)
        except APIError:
            return None
        state = container["State"]
        if container["Config"]["Labels"].get(labels.STEP) != step.digest or state["Status"] == "created":
            return None
        if state["Status"] != "running" and state["ExitCode"] in _ENDED_WITH_ENGINE and not state["OOMKilled"]:
            return None
        if not step.line:
            return 0
        mark = f"{STEP_MARK}{step.line}".rstrip().rpartition("\n")[2]  # a step may have several lines
        lines = [line for line in self._earlier_lines if not line.startswith(SAVING)]
        passed = next((count for count, line in enumerate(reversed(lines)) if line == mark), None)
        if passed is None:
            self._request.emit(f"{STEP_MARK}{step.line}")
        return passed or 0

    def _start(self, api: docker.APIClient, step: BuildStep) -> None:
        try:
            api.start(self._name)
        except APIError as error:
            if error.status_code is not None and error.status_code < 500 and step.line:
                problem = f"install step {step.number} cannot run: {error.explanation}: {step.line}"
                raise EngineError(problem, permanent=True) from error
            raise

    def _follow(self, passed: int) -> None:
        """Pass on the output of the step until it has ended, or until the order is cancelled."""
        output = BuildLog(self._request, passed)
        self._request.cancellation.attach(self._kill)
        if self._request.cancellation.asked:
            self._kill()
        with self._engine.stream() as api:
            count = 0
            last: Frame | None = None
            for frames in read_log_frames(api, self._name, LogCursor(), follow=True):
                output.add_output(b"".join(frame.data for frame in frames))
                count += len(frames)
                last = frames[-1]
            api.wait(self._name, timeout=None)
            for frames in read_missed_frames(api, self._name, count, last):
                output.add_output(b"".join(frame.data for frame in frames))
        output.end()
        self._request.cancellation.attach(lambda: None)
        self._request.cancellation.check()

    def _judge_end(self, api: docker.APIClient, step: BuildStep) -> None:
        state = api.inspect_container(self._name)["State"]
        subject = f"install step {step.number}" if step.line else "the list of packages"
        if self._late.is_set():
            problem, hint = EXCESS_HINTS["seconds"]
            raise EngineError(f"{subject} ({step.line}) {problem}", hint, permanent=True)
        if state["ExitCode"] == OUT_OF_MEMORY or (state["OOMKilled"] and state["ExitCode"] != 0):
            problem, hint = EXCESS_HINTS["memory"]
            raise EngineError(f"{subject} ({step.line}) {problem}", hint, permanent=True)
        if state["ExitCode"] != 0:
            problem = f"{subject} failed with exit code {state['ExitCode']}: {step.line}"
            if self._has_filled_disk():
                raise DiskFull(problem, FULL_DISK_HINT, permanent=True)
            raise EngineError(problem, permanent=True)

    def _has_filled_disk(self) -> bool:
        """Return True when the disk of the engine is full: the line of the step that says so may be lost there."""
        try:
            use = EngineDisk(self._helpers).read_disk()
        except DiskFull:  # not even for the container that measures
            return True
        except RisemlError:
            return False
        return use is not None and use.percent >= FULL_PERCENT

    def _commit(self, api: docker.APIClient, step: BuildStep, below: dict[str, Any]) -> None:
        """Make an image of what a step has left, and say so when it takes longer than a moment."""
        image = self._request.image
        name = step.image if step.line else image.reference
        subject = f"what install step {step.number} has changed" if step.line else "the environment"
        notice = threading.Timer(_SAVING_AFTER, self._request.emit, (f"{SAVING}: the engine writes {subject}",))
        notice.daemon = True
        notice.start()
        repository, _, tag = name.partition(":")
        try:
            answer = api.post(
                f"{api.base_url}/v{api.api_version}/commit",
                params={"container": self._name, "repo": repository, "tag": tag},
                json=image_config(step, below, "" if step.line else image.digest, self._server),
                timeout=(api.timeout, _COMMIT_PATIENCE),
            )
        finally:
            notice.cancel()
        raise_for_refusal(answer)

    def _ensure_network(self, api: docker.APIClient) -> str:
        """Return the network of the steps; by default one of this build alone, so that it meets no other container."""
        if self._settings.network != DEFAULT_NETWORK:
            return self._settings.network
        if not api.networks(names=[f"^{self._name}$"]):
            api.create_network(
                self._name, driver="bridge", check_duplicate=True, labels={labels.BUILD_SERVER: self._server}
            )
        return self._name

    def _end_late(self) -> None:
        self._late.set()
        self._kill()

    def _kill(self) -> None:
        """End the step that runs. The thread that follows it sees its end."""
        with suppress(NotThere):
            try:
                with self._engine.api(patient=True) as api:
                    api.kill(self._name)
            except EngineError as error:
                log.info("the build %s was not running: %s", self._name, error.message)


def _copy_step_files(project: ProjectFiles, paths: frozenset[str], archive: IO[bytes], digest: hashlib._Hash) -> None:
    for entry, content in project.read_files():
        if entry.path in paths:
            digest.update(write_header(entry._replace(mtime=0)))
            archive.write(write_header(entry, below=WORKING_FOLDER))
            for piece in content:
                digest.update(piece)
                archive.write(piece)
            archive.write(pad_content(entry.size))
