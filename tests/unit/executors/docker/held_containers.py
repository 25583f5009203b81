"""An engine that answers from memory: it has containers, and no connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import docker
import requests

from riseml.executors.docker.helpers import Helpers
from riseml.executors.transports.engine_client import Engine

SERVER = "5e17e4a0" * 4
OTHER = "07e4a05e" * 4


class HeldContainers(docker.APIClient):
    """The containers of an engine, by their names; it has no connection."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.note_create: Callable[[str], None] = lambda _: None
        self.is_busy = False  # it removes nothing in time

    def create_container_from_config(self, config: Any, name: str | None = None, platform: str | None = None) -> Any:
        self.note_create(str(name))
        self.add(str(name), config["Labels"])

    def add(self, name: str, marks: dict[str, str], state: str = "created", created: float = 0) -> None:
        self.rows[name] = {"Id": name, "Names": [f"/{name}"], "Labels": marks, "State": state, "Created": created}

    def remove_container(self, container: Any, **_: Any) -> None:  # type: ignore[override]  # as it is called here
        if self.is_busy:
            raise requests.exceptions.ReadTimeout
        if self.rows.pop(container, None) is None:
            raise docker.errors.NotFound("no such container", requests.Response())

    def containers(self, *_: Any, filters: Any = None, **_options: Any) -> Any:
        wanted = filters["label"] if isinstance(filters["label"], list) else [filters["label"]]
        return [row for row in self.rows.values() if all(self._has(row["Labels"], mark) for mark in wanted)]

    def images(self, *_: Any, **_options: Any) -> Any:
        return []

    def networks(self, *_: Any, **_options: Any) -> Any:
        return []

    def volumes(self, *_: Any, **_options: Any) -> Any:
        return {"Volumes": None}

    @staticmethod
    def _has(marks: dict[str, str], wanted: str) -> bool:
        key, _, value = wanted.partition("=")
        return key in marks and value in ("", marks[key])


class FakeEngine(Engine):
    """An engine that answers from memory."""

    def __init__(self, api: HeldContainers) -> None:
        super().__init__("unix:///none")
        self.fake = api

    @contextmanager
    def api(self, *, patient: bool = False, brief: bool = False) -> Iterator[docker.APIClient]:
        with self._translate_errors():
            yield self.fake


@dataclass(frozen=True)
class HelperSite:
    api: HeldContainers
    helpers: Helpers


class ProgramEngine(HeldContainers):
    """An engine that makes images of programs, and runs nothing: each program has ended with the same exit code."""

    def __init__(self, code: int = 0, arch: str = "amd64") -> None:
        super().__init__()
        self.code = code
        self.arch = arch
        self.imported: dict[str, bytes] = {}  # tar of each image, by its name
        self.requests: list[dict[str, Any]] = []  # the configuration of each container

    def create_container_from_config(self, config: Any, name: str | None = None, platform: str | None = None) -> Any:
        self.requests.append(config)
        super().create_container_from_config(config, name, platform)

    def version(self, *_: Any, **_options: Any) -> Any:
        return {"Arch": self.arch}

    def inspect_image(self, image: Any) -> Any:
        if image not in self.imported:
            raise docker.errors.ImageNotFound("no such image", requests.Response())
        return {"Id": image}

    def import_image_from_data(self, data: Any, repository: Any = None, tag: Any = None, changes: Any = None) -> Any:
        self.imported[f"{repository}:{tag}"] = data

    def start(self, *_: Any, **_options: Any) -> None:
        """Do nothing."""

    def wait(self, *_: Any, **_options: Any) -> Any:
        return {"StatusCode": self.code}
