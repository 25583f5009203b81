"""The run that a user names to repeat: an experiment of the server, or the folder of a capsule."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from riseml.base.errors import NotFound
from riseml.base.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from riseml import wire
    from riseml.capsules.folder import CapsuleInFolder
    from riseml.client.server_client import Client
    from riseml.submission.submitter import Submitter

_HEADERS = 1 << 30  # bytes that an archive may have beyond its contents, whose size the upload limit bounds


@dataclass(frozen=True, slots=True)
class CapsuleSource:
    """A capsule with its riseml.yml and its origin."""

    name: str  # its name in messages
    capsule: wire.Capsule
    config: str  # the riseml.yml; of a folder without the values of `env`
    place: CapsuleInFolder | None = None  # None: the server has it
    is_set: bool = False  # the user has named a whole set

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The values of the experiment's parameters; those of a whole set are in its riseml.yml."""
        return [] if self.is_set else list(self.capsule["parameters"].items())


def find_capsule(submitter: Submitter, text: str) -> CapsuleInFolder | None:
    """Return the capsule of the folder that a user has named; None: the text is the ID of an experiment."""
    from riseml.capsules.folder import find_capsule_folder, read_capsule

    folder = find_capsule_folder(submitter.folder, text)
    return None if folder is None else read_capsule(folder)


def read_source(submitter: Submitter, text: str, place: CapsuleInFolder | None, client: Client | None) -> CapsuleSource:
    """Return the run that a user has named.

    Args:
        submitter: the user.
        text: the run as the user named it.
        place: what `find_capsule` returns for the text.
        client: needed for an experiment of the server.
    """
    from riseml.client.identities import find_identity

    if place is not None:
        return CapsuleSource(text, place.capsule, place.capsule["config"], place)
    assert client is not None, "an ID needs the server"
    chosen = find_identity(client, text)
    is_set = client.get_experiment(chosen)["type"] == "set"
    capsule = client.get_capsule(chosen)
    return CapsuleSource(f"experiment {chosen}", capsule["capsule"], capsule["config"], is_set=is_set)


@contextmanager
def open_archive(submitter: Submitter, source: CapsuleSource, client: Client | None) -> Iterator[Path]:
    """Yield the archive with the project's files: from the capsule, otherwise a copy from the server.

    Raises:
        NotFound: neither has it.
    """
    import tempfile
    from pathlib import Path

    digest = source.capsule["code"]["digest"]
    archive = None if source.place is None else source.place.find_archive()
    if archive is not None:
        yield archive
        return
    if not digest:
        raise NotFound(f"{source.name} has no project files", "there is nothing to give back")
    if client is None or not client.has_snapshot(digest):
        raise NotFound(
            f"the files of {source.name} ({digest[:12]}) are not in the capsule, and not on this server",
            "ask the server on which it ran",
        )
    with tempfile.NamedTemporaryFile(prefix="riseml-code-") as file:
        client.fetch_snapshot(digest, file, submitter.settings().upload_limit + _HEADERS)
        file.flush()
        yield Path(file.name)
