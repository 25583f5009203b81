"""What a client sends to run a riseml.yml."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from annotated_types import MaxLen  # bounds that pydantic checks and OpenAPI shows
from typing_extensions import TypedDict  # pydantic can read this one before Python 3.12

Name = Annotated[str, MaxLen(256)]
Value = Annotated[str, MaxLen(2**17)]
"""Linux allows this many bytes in one variable or argument of a process."""
Pairs = Annotated[list[tuple[Name, Value]], MaxLen(1000)]


class Submission(TypedDict):
    """A request to run a riseml.yml."""

    project: Name
    file: Annotated[str, MaxLen(4096)]  # how problems name the file
    config: Annotated[str, MaxLen(2**20)]  # the text of the riseml.yml
    key: NotRequired[Annotated[str, MaxLen(64)]]  # chosen by the client: a second POST with it creates nothing
    snapshot: NotRequired[Annotated[str, MaxLen(64)]]  # digest of the project's files
    parameters: NotRequired[Pairs]  # `-p name=value`
    pull: NotRequired[bool]  # ask the registry what the tag of the image stands for now
    settings: NotRequired[Pairs]  # `--set path=value`
    environment: NotRequired[Annotated[dict[Name, Value], MaxLen(1000)]]  # variables that `env` passes through
    executor: NotRequired[Literal["docker", "process"]]  # what the user chose; the server refuses to use another one
