"""With which credential an image is pulled for a user and a project, and who may use an image that a host has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from riseml.base.errors import Refused
from riseml.base.records import dataclass
from riseml.base.secrets import RegistryCredential, find_registry_host
from riseml.base.settings import Settings
from riseml.model import Experiment
from riseml.server.clock import now
from riseml.server.hosts.ask_registry import ask_registry
from riseml.server.hosts.docker_login import find_docker_login
from riseml.server.hosts.host_set import HostSet
from riseml.store.secret_store import SecretOwner, SecretStore


@dataclass(frozen=True, slots=True)
class RegistryLogins:
    """The credentials of one server."""

    store: SecretStore
    settings: Settings
    environ: Mapping[str, str]  # of the server: a single user's own Docker configuration counts, too

    def find_login(self, owners: Sequence[SecretOwner], image: str) -> RegistryCredential | None:
        """Return the credential with which an image is requested: that of the first owner who has one; for a single
        user else that of the user's own Docker configuration. None: without one.

        Raises:
            EngineError: the stored password does not open.
        """
        host = find_registry_host(image)
        credential = self.store.use_registry(owners, host, now())
        if credential is None and not self.settings.is_team:
            return find_docker_login(self.environ, host)
        return credential

    def find_run_login(self, experiment: Experiment, image: str) -> RegistryCredential | None:
        """Return the credential with which an image of a run is requested; see `find_login`."""
        return self.find_login(self.store.list_run_owners(experiment), image)

    def check_access(self, owners: Sequence[SecretOwner], images: Iterable[str], hosts: HostSet) -> None:
        """Check on a team's server that a user may pull images, also where a host has them already: another user's
        credential may have fetched them. Images of registries for which nobody has a credential are public.

        Raises:
            Refused: the registry does not give an image with the user's credential, or does not answer.
            Unreachable: no host answers.
        """
        if not self.settings.is_team:
            return
        private = self.store.list_registry_hosts()
        for image in images:
            if find_registry_host(image) in private:
                try:
                    ask_registry(hosts, image, self.find_login(owners, image))
                except Refused as error:
                    host = find_registry_host(image)
                    raise Refused(
                        f"you may not use the image {image}: {error.message}", f"`riseml registry login {host} -u USER`"
                    ) from error
