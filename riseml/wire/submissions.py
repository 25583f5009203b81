"""What a client sends to run a riseml.yml."""

from __future__ import annotations

from typing import Annotated, NotRequired

from annotated_types import Ge, Le, MaxLen, MinLen  # bounds that pydantic checks and OpenAPI shows
from typing_extensions import TypedDict  # pydantic can read this one before Python 3.12

from riseml.base.annotations import MOST_TAGS
from riseml.base.settings import ExecutorName

Name = Annotated[str, MaxLen(256)]
Value = Annotated[str, MaxLen(2**17)]
"""Linux allows this many bytes in one variable or argument of a process."""
Pairs = Annotated[list[tuple[Name, Value]], MaxLen(1000)]


Seconds = Annotated[float, Ge(1), Le(10**8)]


class NotebookRequest(TypedDict):
    """What a notebook has beside the environment of a project."""

    idle_timeout: NotRequired[Seconds]  # without anything to do, after which it ends


class TensorBoardRequest(TypedDict):
    """A request for one TensorBoard over the outputs of experiments."""

    experiments: Annotated[list[Annotated[str, MaxLen(200)]], MinLen(1), MaxLen(500)]  # IDs: `4`, `144`, `144.3`
    key: NotRequired[Annotated[str, MaxLen(64)]]  # as that of a Submission
    left_after: NotRequired[Seconds]  # without a client, after which it ends
    executor: NotRequired[ExecutorName]  # as that of a Submission


class PinnedImage(TypedDict):
    """What the name of an image stood for in an earlier run."""

    image: Annotated[str, MaxLen(4096)]
    digest: Annotated[str, MaxLen(4096)]


class GitState(TypedDict):
    """The git revision of a project when it was submitted, as the client found it."""

    revision: Annotated[str, MaxLen(64)]  # the commit, in hex
    clean: bool | None  # the files are those of the commit, and git ignores what else is there; None: not known
    # paths that git has not filled: submodules, pointers of Git LFS; without it: none
    missing: NotRequired[Annotated[list[Annotated[str, MaxLen(4096)]], MaxLen(100)]]


class MissingContents(TypedDict):
    """Which contents of a project's files the server lacks; when none, it has the project's state."""

    missing: list[str]  # SHA-256 in hex, in the order of the files


class RunAnnotation(TypedDict):
    """What a user says about a run from its beginning. What is here takes the place of the keys of riseml.yml."""

    name: NotRequired[Value]  # empty: none
    tags: NotRequired[Annotated[list[Name], MaxLen(MOST_TAGS)]]
    note: NotRequired[Value]  # empty: none


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
    notebook: NotRequired[NotebookRequest]  # run a JupyterLab in this environment instead of `run`
    executor: NotRequired[ExecutorName]  # what the user chose; the server refuses to use another one
    git: NotRequired[GitState]  # without it: the project is in no git repository
    pinned: NotRequired[Annotated[list[PinnedImage], MaxLen(100)]]  # the jobs run these, whatever the names mean now
    annotation: NotRequired[RunAnnotation]  # what the user says about the run
    # what must have ended before it starts: `4`; `4:any`, however 4 ended. Outputs that it reads need no entry
    after: NotRequired[Annotated[list[Annotated[str, MaxLen(100)]], MaxLen(100)]]
    rerun_of: NotRequired[Name]  # the experiment that this one repeats
