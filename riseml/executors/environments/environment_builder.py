"""Makes one virtual environment: `python3 environment_builder.py FOLDER`, under a supervisor of this machine or as the
script of one batch job of a cluster.

The server has written `order.json` into FOLDER. The builder prints the output of the steps. It takes the file `claim`,
so that a second job of the same order (whose submission got no answer) ends at once, and writes `end.json` last: the
error, empty when the environment is complete, the stage in which it happened, and whether the disk was full then: the
line that says so may have found no room in the log.

Python 3.6 or newer, standard library only. It never imports riseml: nodes do not have it.
"""

import errno
import json
import os
import select
import signal
import subprocess
import sys
import time

RESERVE = 1 << 16  # bytes on the disk for the end of a build, which may be what has filled it
WRITE_PAUSE = 2  # seconds between two attempts to write the end on a full disk
MOST_WRITES = 30  # attempts
LEAST_ROOM = 1 << 18  # bytes: a disk with less is full

EMPTY = "empty"  # the stages of a build
PACKAGES = "packages"
STEPS = "steps"


class StepFailed(Exception):
    """A step failed; the message is for people."""


class EnvironmentBuilder:
    """One environment, from the claim of its order to its end."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        with open(os.path.join(folder, "order.json")) as file:
            self.order = json.load(file)
        self.target = self.order["target"]  # type: str
        self.environment = dict(os.environ)
        self.environment.update(self.order["variables"])
        path = self.environment.get("PATH", os.defpath)
        self.environment.update(VIRTUAL_ENV=self.target, PATH=os.path.join(self.target, "bin") + ":" + path)
        self.stage = EMPTY
        self.is_full = False  # whether no room was left on the disk of the environment when a step failed
        self.deadline = time.monotonic() + self.order.get("seconds", float("inf"))
        self.child = None  # type: subprocess.Popen[bytes] | None

    def claim(self) -> bool:
        """Take the order; return False when another job has it."""
        try:
            os.close(os.open(os.path.join(self.folder, "claim"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return False
        return True

    def run(self) -> int:
        """Make the environment; return 0 when it is complete."""
        signal.signal(signal.SIGTERM, self._stop)
        os.dup2(1, 2)  # what the steps print stays in one order
        error = ""
        try:
            self._reserve_end()
            self._make()
        except (StepFailed, OSError) as problem:
            error = str(problem)
            self.is_full = has_no_room(self.target) or has_no_room(self.folder)
        for _ in range(MOST_WRITES):
            try:
                self._write_end(error)
            except OSError as problem:  # the disk is full, and its file system cannot reserve room
                error = error or str(problem)
                self.is_full = True
                subprocess.call(["rm", "-rf", self.target])
                select.select([], [], [], WRITE_PAUSE)
            else:
                break
        return 1 if error else 0

    def _reserve_end(self) -> None:
        with open(os.path.join(self.folder, "end.new"), "wb") as file:
            file.write(bytes(RESERVE))

    def _write_end(self, error: str) -> None:
        """Write the end into the room that is reserved for it."""
        path = os.path.join(self.folder, "end.new")
        content = json.dumps({"error": error[: RESERVE // 8], "stage": self.stage, "full": self.is_full}).encode()
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            if os.write(file, content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            os.ftruncate(file, len(content))
        finally:
            os.close(file)
        os.rename(path, os.path.join(self.folder, "end.json"))

    def _make(self) -> None:
        uv = self.order["uv"] if self._call([self.order["uv"], "--version"], quiet=True) == 0 else ""
        self._make_empty(uv)
        self.stage = PACKAGES
        packages = self.order["packages"]
        python = os.path.join(self.target, "bin", "python")
        if packages:
            install = [uv, "pip", "install", "--compile-bytecode", "--python", python]
            command = install if uv else [python, "-m", "pip", "install"]
            if self._call(command + packages) != 0:
                raise StepFailed(packages[0] + " cannot be installed for " + self.order["python_name"])
        self.stage = STEPS
        project = os.path.join(self.target, "project")
        os.rename(os.path.join(self.folder, "project"), project)
        for number, (line, command) in enumerate(self.order["steps"], 1):
            say("--> " + line)
            code = self._call(command, folder=project)
            if code != 0:
                raise StepFailed(f"install step {number} failed with exit code {code}: {line}")
        command = [uv, "pip", "freeze", "--python", python] if uv else [python, "-m", "pip", "freeze"]
        with open(os.path.join(self.target, "packages.txt"), "wb") as output:
            code = subprocess.call(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=output)
        if code != 0 and has_no_room(self.target):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), output.name)

    def _make_empty(self, uv: str) -> None:
        """Make an environment, with pip if it can be fetched."""
        failure = "a virtual environment cannot be made with " + self.order["python_name"]
        if not uv:  # uv does not run on this kind of node
            if self._call([self.order["python"], "-m", "venv", self.target]) != 0:
                raise StepFailed(failure)
            return
        command = [uv, "venv", "--quiet", "--python", self.order["python"]]
        if self._call([*command, "--seed", self.target]) == 0:
            return
        subprocess.call(["rm", "-rf", self.target])
        if self.order["needs_pip"] or self._call([*command, self.target]) != 0:
            raise StepFailed(failure)
        say("pip cannot be fetched, so the environment has none")

    def _call(self, command: "list[str]", folder: "str | None" = None, quiet: bool = False) -> int:  # noqa: FBT001, FBT002  # 3.6 style
        """Run a command in a process group of its own; return its exit code as a shell reports it."""
        output = subprocess.DEVNULL if quiet else None
        try:
            self.child = subprocess.Popen(
                command,
                cwd=folder or self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=os.setsid,
            )
        except OSError:
            return 127
        try:
            code = self.child.wait(None if self.deadline == float("inf") else max(0, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._kill_group()
            self.child.wait()
            raise StepFailed("the build took longer than a build may take") from None
        self._kill_group()
        return 128 - code if code < 0 else code

    def _stop(self, *_: object) -> None:
        """End the running command, because the supervisor or the cluster ends the job."""
        self._kill_group()
        os._exit(128 + signal.SIGTERM)

    def _kill_group(self) -> None:
        if self.child is not None:
            try:
                os.killpg(self.child.pid, signal.SIGKILL)
            except OSError:  # all of it has ended
                return


def has_no_room(folder: str) -> bool:
    """Return whether the file system of a folder is full; False when there is no such folder."""
    try:
        file_system = os.statvfs(folder)
    except OSError:
        return False
    return file_system.f_bavail * file_system.f_frsize < LEAST_ROOM


def say(line: str) -> None:
    """Print a line in UTF-8, whatever the locale is."""
    os.write(1, (line + "\n").encode("utf-8", "surrogateescape"))


def main() -> int:
    """Make the environment of a folder, unless another job does."""
    builder = EnvironmentBuilder(sys.argv[1])
    if not builder.claim():
        return 0
    return builder.run()


if __name__ == "__main__":
    sys.exit(main())
