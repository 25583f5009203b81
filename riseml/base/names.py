"""Names of experiments, jobs, hosts, images and frameworks. Standard library only.

A canonical ID is `[user.]experiment[.sub][.job-type[.number]]`: `4`, `paul.4`, `144.1`, `4.ps`, `paul.18.1.worker.3`.
It names one thing and, as a prefix, all below it: `4.ps` is every parameter server of experiment 4.
"""

from __future__ import annotations

import re
from typing import NewType

from riseml.base.errors import UsageError
from riseml.base.records import dataclass

JobName = NewType("JobName", str)
"""A job inside its experiment: `master`, `worker.1`, `build`."""

HostName = NewType("HostName", str)
"""A host of the pool, as pool.yml names it."""

LOCAL_HOST = HostName("local")
SUBNETS = "10.213.0.0/16"
"""The range from which the networks of experiments are taken, CIDR."""

THIS_MACHINE = HostName("this-machine")
"""The host of the process executor. It differs from the host of the local engine, so that neither executor takes the
jobs of the other one for vanished."""

HOST_LABEL = "host"
"""The label that every host has without being given it: its own name."""

BUILD = JobName("build")

FETCHED_VOLUME = "riseml-fetched-"
"""Begins the names of the volumes with copies of fetched data on hosts."""

STEP_REPOSITORY = "riseml/step"
"""The names of images that install steps have left, below environments."""

CODE_REPOSITORY = "riseml/code"
"""The repository of the images that hold the code of a project on top of an environment."""

UNNAMED_FRAMEWORKS = frozenset({"plain", "roles"})
"""Plug-ins that are not a value of `framework` in riseml.yml: users see no name for them."""

_ALIASES = ("docker.io/", "index.docker.io/")  # the registry that names without a registry mean
_LIBRARY = "library/"

_USER = r"[A-Za-z_][A-Za-z0-9_@-]*"
_NUMBER = "[0-9]{1,9}"  # ASCII, and small enough for every store
_ID = (  # not compiled here: every command imports this module, and few get an ID
    rf"(?:(?P<user>{_USER})\.)?(?P<number>{_NUMBER})(?:\.(?P<sub>{_NUMBER}))?"
    rf"(?:\.(?P<type>[a-z][a-z-]*)(?:\.(?P<index>{_NUMBER}))?)?"
)


@dataclass(frozen=True, slots=True, order=True)
class CanonicalId:
    """One parsed canonical ID."""

    number: int  # number of the experiment or the set
    sub: int | None = None  # number of the experiment in its set
    user: str | None = None  # None: the caller
    job_type: str | None = None  # `worker`; None: the whole experiment
    index: int | None = None  # `1` of `worker.1`; None: every job of this type

    @property
    def job(self) -> JobName | None:
        """The job or the group of jobs that is named; None for the whole experiment."""
        return None if self.job_type is None else job_name(self.job_type, self.index)

    @property
    def experiment(self) -> CanonicalId:
        """The ID of the experiment or the set, without the job."""
        return CanonicalId(self.number, self.sub, self.user)

    def names(self, job: JobName) -> bool:
        """Return True when this ID names `job`, itself or as a prefix."""
        return self.job is None or job == self.job or job.startswith(f"{self.job}.")

    def __str__(self) -> str:
        return _join_parts(self.user, self.number, self.sub, self.job)


def parse_id(text: str) -> CanonicalId:
    """Parse a canonical ID.

    Example:
        parse_id("paul.18.1.worker.3").job   # "worker.3"

    Raises:
        UsageError: the text is not a canonical ID.
    """
    match = re.fullmatch(_ID, text.strip())
    if match is None or len(text) > 200:
        raise UsageError(
            f"{text[:80]!r} is not an experiment ID",
            "an ID looks like 4, 144.1, 4.master or paul.4.worker.2; `riseml status -a` lists yours",
        )
    number, sub, index = (None if (part := match[name]) is None else int(part) for name in ("number", "sub", "index"))
    return CanonicalId(number or 0, sub, match["user"], match["type"], index)


def looks_like_id(text: str) -> bool:
    """Return True for a text that is a canonical ID, or could be taken for one: digits and dots alone."""
    return re.fullmatch(rf"{_ID}|[0-9.]+", text) is not None


def job_name(job_type: str, index: int | None = None) -> JobName:
    """Return the name of a job: `worker.1` for (`worker`, 1), `master` for (`master`, None)."""
    return JobName(job_type if index is None else f"{job_type}.{index}")


def job_type(job: JobName) -> str:
    """Return the type of a job: `worker` for `worker.1`."""
    return job.partition(".")[0]


def hostname(job: JobName) -> str:
    """Return the name under which the other jobs reach this one: `worker-1` for `worker.1`."""
    return job.replace(".", "-")


def experiment_name(number: int, sub: int | None = None) -> str:
    """Return the name of an experiment for its owner: `4`, or `144.1` for an experiment of a set."""
    return str(number) if sub is None else f"{number}.{sub}"


def name_for_reader(reader: str, owner: str, number: int, sub: int | None = None) -> str:
    """Return the name of an experiment for a user who reads of it: `4` of their own, `paul.4` of another user."""
    name = experiment_name(number, sub)
    return name if owner == reader else f"{owner}.{name}"


def find_whole(identity: str) -> str:
    """Return the experiment or the set that a canonical ID is about: `144` of `144.3`, `paul.144` of `paul.144.3`."""
    head, *parts = identity.split(".")
    return head if head[:1].isdigit() or not parts else f"{head}.{parts[0]}"


def split_reference(reference: str) -> tuple[str, str]:
    """Return the repository and the tag of `riseml/environment:ab12`; without a tag, it is `latest`."""
    bare = reference.partition("@")[0]
    repository, _, tag = bare.rpartition(":")
    return (repository, tag) if repository and "/" not in tag else (bare, "latest")


def name_repository(reference: str) -> str:
    """Return the repository of an image as an engine shows it: `python` for `docker.io/library/python:3.11`."""
    repository = split_reference(reference)[0]
    for alias in _ALIASES:
        if repository.startswith(alias):
            return repository.removeprefix(alias).removeprefix(_LIBRARY)
    return repository.removeprefix(_LIBRARY)


def _join_parts(*parts: object) -> str:
    return ".".join(str(part) for part in parts if part is not None)


def show_framework(plugin: str) -> str:
    """Return the name of a framework as users know it; empty for a plug-in that has none."""
    return "" if plugin in UNNAMED_FRAMEWORKS else plugin


def join_address(host: str, port: int) -> str:
    """Return `host:port`, with brackets around an IPv6 address: `[fd00::2]:2222`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_address(address: str) -> tuple[str, str]:
    """Return host and port of `host:port`; an IPv6 address has no brackets then."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), port
