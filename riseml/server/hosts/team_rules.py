"""What a team's server refuses on its hosts, and of its users' images, unless server.yml allows it.

Users of one server do not trust each other's code. So their jobs run in containers alone, on engines that nobody else
reaches, in networks of their own, and from images that the admin has listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from riseml.base.errors import Refused
from riseml.base.names import name_repository, split_reference
from riseml.base.records import dataclass
from riseml.base.settings import PROCESS, Settings
from riseml.base.states import Network
from riseml.executors.capabilities import Finding, Outcome
from riseml.model import Plan, Resolved
from riseml.spec.pool.types import HostSpec, PoolSpec, Volume
from riseml.spec.server.types import Permission, ServerConfig

_ID = re.compile(r"(sha256:)?[0-9a-f]{1,64}")
_BETWEEN_USERS = frozenset({"reach", "output"})
"""Topics of findings: what jobs reach on their host, and who reaches what they leave in an output."""

_OWN = "riseml/"
_HOST = "host"  # the engine's name for the network of its machine

_WHY = {
    Permission.PROCESS: "jobs without containers run as the server's user, with its files and keys",
    Permission.FALLBACK: "a server whose engine does not answer would run jobs as processes, with its files and keys",
    Permission.PLAINTEXT: "what travels without encryption can be read and changed on the way",
    Permission.HOST_NETWORK: "jobs in the network of their host reach its services and each other's ports",
}


@dataclass(frozen=True, slots=True)
class TeamRules:
    """What the admin of a team's server allows."""

    allow: frozenset[Permission] = frozenset()
    images: tuple[str, ...] | None = None  # patterns; None: all images

    def check_settings(self, settings: Settings) -> None:
        """Check the settings of a server that starts.

        Raises:
            Refused: they ask for something that server.yml does not allow.
        """
        if settings.executor == PROCESS:
            self._require(Permission.PROCESS, "RISEML_EXECUTOR is process")
        if settings.build_network == _HOST:
            self._require(Permission.HOST_NETWORK, "RISEML_BUILD_NETWORK is host")

    def check_local_engine(self, settings: Settings) -> None:
        """Check the engine of DOCKER_HOST.

        Raises:
            Refused: it is reached without TLS, and server.yml does not allow that.
        """
        if settings.engine.startswith("tcp://") and settings.engine_certificates is None:
            self._require(Permission.PLAINTEXT, f"DOCKER_HOST is {settings.engine}, without TLS")

    def check_fallback(self) -> None:
        """Check that jobs may run as processes of a server that was not told so.

        Raises:
            Refused: server.yml does not allow it.
        """
        self._require(Permission.FALLBACK, "open experiments were accepted for processes")

    @property
    def allows_fallback(self) -> bool:
        """Return True when jobs may run as processes where no engine answers."""
        return Permission.FALLBACK in self.allow

    def check_pool(self, pool: PoolSpec) -> None:
        """Check a pool.yml.

        Raises:
            Refused: it says something that server.yml does not allow, or that no team's server does.
        """
        for host in pool.hosts:
            self.check_host(host)
        if pool.network is Network.HOST:
            self._require(Permission.HOST_NETWORK, "pool.yml says `network: host`")
        if pool.network is Network.OVERLAY and not pool.encrypted and len(pool.hosts) > 1:
            self._require(Permission.PLAINTEXT, "pool.yml says `encrypted: false`")
        if isinstance(pool.data, Volume):
            raise Refused(
                "pool.yml keeps data in a volume, which every job mounts as a whole",
                "name a folder that all hosts see as `data`: a team's server mounts in each job what its user may read",
            )

    def check_host(self, host: HostSpec) -> None:
        """Check one host.

        Raises:
            Refused: its engine is reached without TLS, and server.yml does not allow that.
        """
        if host.url.startswith("tcp://") and host.tls is None:
            self._require(Permission.PLAINTEXT, f"the host {host.name} is {host.url}, without TLS")

    def check_store(self, name: str, *, insecure: bool) -> None:
        """Check a store of stores.yml that an experiment uses.

        Raises:
            Refused: it is reached without TLS, and server.yml does not allow that.
        """
        if insecure:
            self._require(Permission.PLAINTEXT, f"stores.yml says `insecure: true` of the store {name}")

    def check_plans(self, plans: Iterable[Plan], resolved: Resolved = ()) -> None:
        """Check the images of plans, and what a submission says that these stand for.

        Raises:
            Refused: one is not for users.
        """
        for base in dict.fromkeys(image.base for plan in plans for image in plan.images):
            self.check_image(base)
        for base, reference in resolved:
            if _ID.fullmatch(reference):
                raise Refused(
                    f"the run had {reference[:19]} as its image {base}, which no registry gives",
                    "a team's server takes images by the digest of a registry; `riseml train` runs what the tag stands"
                    " for now",
                )

    def check_image(self, reference: str) -> None:
        """Check a base image that a user names.

        Raises:
            Refused: it is no image of a registry, or none that the admin has listed.
        """
        if _ID.fullmatch(reference):
            raise Refused(
                f"the image {reference[:80]} is an ID, or the beginning of one: any image of the host, also other"
                " users' code",
                "name an image of a registry and its tag, such as python:3.12",
            )
        repository = name_repository(reference)
        if repository.startswith(_OWN):
            raise Refused(
                f"the image {reference[:80]} is one that riseml makes, with environments and code of any user",
                "name an image of a registry, such as python:3.12",
            )
        if self.images is not None and not _is_listed(reference, self.images):
            listed = ", ".join(self.images[:10])
            raise Refused(
                f"the image {reference[:80]} is not among those that this server's admin allows: {listed}",
                "name one of these, or ask the admin to add a pattern to `images` in server.yml",
            )

    def judge_finding(self, finding: Finding) -> Finding:
        """Return a finding of `riseml pool check`: what only matters between users is an error on a team's server."""
        is_worse = finding.outcome is Outcome.NOTE and finding.topic in _BETWEEN_USERS
        return replace(finding, outcome=Outcome.FAILED) if is_worse else finding

    def _require(self, permission: Permission, claim: str) -> None:
        if permission not in self.allow:
            raise Refused(
                f"{claim}, which a team's server does not do: {_WHY[permission]}",
                f"the admin allows it by `allow: [{permission.value}]` in server.yml",
            )


def make_team_rules(config: ServerConfig | None) -> TeamRules | None:
    """Return the rules of a server; None: it serves its own user alone, and refuses nothing."""
    return None if config is None else TeamRules(config.allow, config.images)


def _is_listed(reference: str, patterns: Sequence[str]) -> bool:
    """Return True when a pattern matches an image. A pattern without a tag is for every tag.

    An image with a digest is that digest, whatever tag stands before it.
    """
    digest = reference.partition("@")[2]
    name = f"{name_repository(reference)}:{digest or split_reference(reference)[1]}"
    return any(fnmatchcase(name, form) for pattern in patterns for form in _list_forms(pattern))


def _list_forms(pattern: str) -> tuple[str, str]:
    """Return a pattern as an engine shows images, and the same for every tag."""
    repository = name_repository(pattern)
    bare = pattern.partition("@")[0]
    has_tag = ":" in bare.rpartition("/")[2]
    form = f"{repository}:{split_reference(bare)[1]}" if has_tag else repository
    return form, f"{form}:*"
