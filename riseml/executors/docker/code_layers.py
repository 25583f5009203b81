"""The code of a project as a layer of an image: it reaches an engine once, and each job gets a private view of it.

A layer is on top of an environment. riseml creates a container that never runs, unpacks the project's files into it
exactly as into a job's own container, and commits it. So all image stores keep the same bytes, modes, owners and times.
The next state of the project is written over the layer of an earlier one, and only the files that differ are sent. The
name of a layer identifies its content, and its labels say how it was made, so that the server keeps no state.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import docker
from docker.errors import APIError, DockerException

from riseml.base.errors import RisemlError
from riseml.base.faultpoints import Point, reach
from riseml.base.names import CODE_REPOSITORY
from riseml.base.records import dataclass
from riseml.executors.docker import labels
from riseml.executors.docker.helper_container import send_archive
from riseml.executors.docker.helpers import Helpers
from riseml.executors.docker.image_names import find_local_image, inspect_image
from riseml.executors.docker.project_archive import WORKING_FOLDER, pack_working_directory
from riseml.executors.transports.engine_client import raise_for_refusal
from riseml.files.archives.project_files import KeptState, ProjectFiles
from riseml.model import ImageObservation, Launch

# fewest bytes of a project that gets a layer: below that, unpacking the project into each container is faster
LEAST_SIZE = 1 << 20
LEAST_COUNT = 500  # or at least this many files
LEAST_COMPRESSED = 64 << 20  # the same where the engine compresses each layer (containerd's image store)
MOST_DEPTH = 8  # most states on top of each other; each one holds files that a later one has replaced
MOST_LAYERS = 32  # layers of one server on one engine
MOST_BYTES = 16 << 30  # most bytes of these layers together
_CONSIDERED = 4  # how many of the newest layers may be the base of the next state
_REMEMBERED = 256  # small projects whose first experiment is remembered
_COMMIT_PATIENCE = 900.0  # seconds for a commit; the engine sends no answer until the layer is there

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _ParentImage:
    """The image below a new layer: an environment, or the layer of an earlier state."""

    image: str  # its id
    depth: int = 0  # depth of the new layer
    paths: frozenset[str] | None = None  # paths of the entries to write; None: all entries
    size: int = 0  # bytes of these entries


@dataclass(frozen=True, slots=True)
class _LayerRequest:
    """One layer that a job needs."""

    name: str  # name of its image: `riseml/code:4f2...`
    base: str  # id of the environment
    launch: Launch
    code: KeptState

    @property
    def owner(self) -> str:
        return f"{self.launch.owner.uid}:{self.launch.owner.gid}"


class CodeLayers:
    """The layers of one server on one engine; several threads use it at the same time.

    Args:
        helpers: the helpers of the server on the engine.
    """

    def __init__(self, helpers: Helpers) -> None:
        self._helpers = helpers
        self._server = helpers.server
        self._changed = threading.Condition()
        self._busy: set[str] = set()  # names of layers that a thread finds or makes at this moment
        self._users: dict[tuple[str, ...], int] = {}  # the first experiment with each small project, oldest first
        self._environments: dict[str, str] = {}  # the image behind each reference, from the last observation
        self._layers: dict[tuple[str, ...], str] = {}  # layers that jobs got, by their content, oldest first

    def note_images(self, present: Mapping[str, ImageObservation]) -> None:
        """Remember the environments that an observation has found."""
        self._environments = {name: image.resolved or name for name, image in present.items() if image.present}

    def note_use(self, layer: str | None, *, exists: bool) -> None:
        """Forget a layer that a job needed and that the engine no longer had."""
        if not exists:
            with self._changed:
                self._layers = {description: name for description, name in self._layers.items() if name != layer}

    @contextmanager
    def lend(
        self, api: docker.APIClient, launch: Launch, code: ProjectFiles, *, compresses: bool
    ) -> Iterator[str | None]:
        """Give the name of an image that has a job's environment and its code; make it when the engine lacks it.

        Give None when the code has to be unpacked into the job's own container: the code is small, the image has a
        volume at the working folder, or the engine could not make the layer. Helper containers are removed at the end,
        when the job runs. A small project gets a layer when a second experiment uses it, for the experiments that
        follow. riseml does not ask the engine for a layer that a job got before: it may be gone (see `note_use`).

        Args:
            api: the engine.
            launch: the job.
            code: the project's files.
            compresses: the engine compresses each layer.

        Raises:
            EngineError: a file is damaged.
        """
        description = self._describe_layer(launch, code)
        earlier_layer = self._layers.get(description)
        if earlier_layer is not None:
            yield earlier_layer
            return
        with self._find_layer(api, launch, code, compresses=compresses) as layer:
            if layer is not None and all(description):
                self._note_layer(description, layer)
            yield layer

    @contextmanager
    def _find_layer(
        self, api: docker.APIClient, launch: Launch, code: ProjectFiles, *, compresses: bool
    ) -> Iterator[str | None]:
        request = None
        is_large = is_worth_it(code, compresses=compresses)
        if is_large or (not compresses and self._is_used_again(launch, code)):
            request = self._make_request(api, launch, code)
        if request is None:
            yield None
        elif is_large:
            with ExitStack() as stack:
                yield self._find_or_make(api, request, stack)
        elif inspect_image(api, request.name) is not None:
            yield request.name
        else:
            yield None
            self._make_for_later(api, request)

    def _note_layer(self, description: tuple[str, ...], layer: str) -> None:
        with self._changed:
            self._layers[description] = layer
            while len(self._layers) > _REMEMBERED:
                del self._layers[next(iter(self._layers))]

    def _describe_layer(self, launch: Launch, code: ProjectFiles) -> tuple[str, ...]:
        """Return the content of a layer for this job; a part is empty when it is not known."""
        environment = self._environments.get(launch.image.reference, "")
        identity = code.identity if isinstance(code, KeptState) else ""
        return (environment, identity, f"{launch.owner.uid}:{launch.owner.gid}")

    def _is_used_again(self, launch: Launch, code: ProjectFiles) -> bool:
        """Return True when a remembered earlier experiment had the same code in the same environment."""
        if not isinstance(code, KeptState):
            return False
        combination = (code.identity, launch.image.reference, f"{launch.owner.uid}:{launch.owner.gid}")
        with self._changed:
            first = self._users.setdefault(combination, launch.key.experiment)
            while len(self._users) > _REMEMBERED:
                del self._users[next(iter(self._users))]
        return first != launch.key.experiment

    def _make_for_later(self, api: docker.APIClient, request: _LayerRequest) -> None:
        """Make a layer unless another thread does. The job runs already, so a failure here must not end it."""
        with self._changed:
            if request.name in self._busy:
                return
        try:
            with ExitStack() as stack:
                self._find_or_make(api, request, stack)
        except (RisemlError, DockerException, OSError) as error:
            log.warning("the code of %s is not kept as a layer: %s", request.launch.title, error)

    def _find_or_make(self, api: docker.APIClient, request: _LayerRequest, stack: ExitStack) -> str | None:
        with self._lock_layer(request.name):
            if inspect_image(api, request.name) is not None:
                return request.name
            stack.callback(self._remove_surplus, api)
            try:
                self._make_layer(api, request, stack)
            except APIError as error:  # for example a full disk: unpacking into the job's own container may still work
                log.warning(
                    "the code of %s is not kept as a layer: %s", request.launch.title, error.explanation or error
                )
                return None
        return request.name

    def _make_request(self, api: docker.APIClient, launch: Launch, code: ProjectFiles) -> _LayerRequest | None:
        image = find_local_image(api, launch.image.reference)
        if image is None or not isinstance(code, KeptState) or hides_code(image):
            return None
        cache_key = f"{self._server} {image['Id']} {launch.owner.uid}:{launch.owner.gid} {code.identity}"
        layer = f"{CODE_REPOSITORY}:{hashlib.sha256(cache_key.encode()).hexdigest()[:32]}"
        return _LayerRequest(layer, str(image["Id"]), launch, code)

    @contextmanager
    def _lock_layer(self, layer: str) -> Iterator[None]:
        """Lock a layer, so that two gangs that start at once make it only once."""
        with self._changed:
            self._changed.wait_for(lambda: layer not in self._busy)
            self._busy.add(layer)
        try:
            yield
        finally:
            with self._changed:
                self._busy.discard(layer)
                self._changed.notify_all()

    def _make_layer(self, api: docker.APIClient, request: _LayerRequest, stack: ExitStack) -> None:
        parent = self._choose_parent(api, request)
        container = {"Image": parent.image, "Cmd": ["-"], "HostConfig": {"NetworkMode": "none"}}
        helper = self._helpers.make(api, "code", container)
        stack.callback(self._helpers.discard, api, helper)
        send_archive(api, helper, "/", pack_working_directory(request.code, request.launch.owner, paths=parent.paths))
        reach(Point.LAYER_FILLED)
        repository, _, tag = request.name.partition(":")
        answer = api.post(
            f"{api.base_url}/v{api.api_version}/commit",
            params={"container": helper, "repo": repository, "tag": tag},
            json={"Labels": self._make_labels(request, parent)},
            timeout=(api.timeout, _COMMIT_PATIENCE),
        )
        raise_for_refusal(answer)
        reach(Point.LAYER_MADE)

    def _choose_parent(self, api: docker.APIClient, request: _LayerRequest) -> _ParentImage:
        """Return the layer of an earlier state that needs the fewest bytes on top, or the environment."""
        best = _ParentImage(request.base, 0, None, request.code.size)
        for row in self._list_layers(api)[: 4 * _CONSIDERED]:
            row_labels = row["Labels"]
            depth = int(row_labels.get(labels.CODE_DEPTH, "0")) + 1
            if (row_labels.get(labels.CODE_BASE), row_labels.get(labels.CODE_OWNER)) != (request.base, request.owner):
                continue
            if depth > MOST_DEPTH:
                continue
            changes = request.code.find_changes(row_labels.get(labels.CODE_SNAPSHOT, ""), row_labels[labels.CODE])
            if changes is not None and changes.size <= best.size // 2:
                best = _ParentImage(str(row["Id"]), depth, changes.paths, changes.size)
        return best

    def _make_labels(self, request: _LayerRequest, parent: _ParentImage) -> dict[str, str]:
        return {
            labels.SERVER: self._server,
            labels.HELPER: "",
            labels.CODE: request.code.identity,
            labels.CODE_SNAPSHOT: request.launch.snapshot,
            labels.CODE_BASE: request.base,
            labels.CODE_OWNER: request.owner,
            labels.CODE_DEPTH: str(parent.depth),
            labels.CODE_SIZE: str(parent.size),
        }

    def _list_layers(self, api: docker.APIClient) -> list[dict[str, Any]]:
        """Return the layers of this server, the newest first."""
        filters = {"reference": CODE_REPOSITORY, "label": labels.label_filter(labels.SERVER, self._server)}
        return sorted(api.images(filters=filters), key=lambda row: int(row["Created"]), reverse=True)

    def _remove_surplus(self, api: docker.APIClient) -> None:
        """Remove the oldest layers above the bounds. A later call removes what this call could not remove."""
        try:
            for row in choose_surplus(self._list_layers(api)):
                with suppress(APIError):  # a container uses it
                    api.remove_image(find_layer_name(row))
        except (DockerException, OSError) as error:
            log.warning("layers above the bounds are removed later: %s", error)


def is_worth_it(code: ProjectFiles, *, compresses: bool) -> bool:
    """Return True when a layer saves time for a project. An engine that compresses layers needs longer for each."""
    if not isinstance(code, KeptState):
        return False
    if compresses:
        return code.size >= LEAST_COMPRESSED
    return code.size >= LEAST_SIZE or code.count >= LEAST_COUNT


def hides_code(image: dict[str, Any]) -> bool:
    """Return True when an image has a volume at the working folder, above it or below it: a layer has no volumes."""
    volumes = [path.strip("/").split("/") for path in (image.get("Config") or {}).get("Volumes") or {}]
    folder = [WORKING_FOLDER]
    return any(path[: len(folder)] == folder or path == [""] for path in volumes)


def is_layer(name: str) -> bool:
    """Return True when an image has the name of a layer. riseml never pulls such a name, so riseml made the image."""
    return name.startswith(f"{CODE_REPOSITORY}:")


def find_layer_name(row: Mapping[str, Any]) -> str:
    """Return the name of a layer in the engine's list of images; it may have other names that riseml did not give."""
    names: list[str] = row["RepoTags"]
    return next(name for name in names if is_layer(name))


def choose_surplus(layers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the layers above the bounds, of a list that begins with the newest. The newest one always stays."""
    count = 0
    size = 0
    for row in layers:
        size += int((row.get("Labels") or {}).get(labels.CODE_SIZE, "0"))
        if count and (count >= MOST_LAYERS or size > MOST_BYTES):
            break
        count += 1
    return layers[count:]


def stores_compressed(info: dict[str, Any]) -> bool:
    """Return True when an engine has containerd's image store, from its answer to `GET /info`."""
    return any("io.containerd.snapshotter" in str(pair) for pair in info.get("DriverStatus") or ())
