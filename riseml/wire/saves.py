"""Outputs that experiments save in object stores."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from annotated_types import MaxLen
from typing_extensions import TypedDict

Key = Annotated[str, MaxLen(2**12)]


class StoreKeys(TypedDict):
    """Keys of the user for a store that has none of its own (`passed_keys` in stores.yml), as variables name them."""

    AWS_ACCESS_KEY_ID: Key
    AWS_SECRET_ACCESS_KEY: Key
    AWS_SESSION_TOKEN: NotRequired[Key]


class SaveRequest(TypedDict):
    """A request to copy an output now."""

    keys: NotRequired[StoreKeys]  # for this copy alone; without them, those that the experiment passed on


class RestoredView(TypedDict):
    """What another attempt began with, with `restore: true`."""

    attempt: int
    files: int  # that came from the store; 0: nothing was saved before
    bytes: int  # their bytes together
    kept: int  # files that were there already, and are the same or newer  # names: of the API


class SavedSummary(TypedDict):
    """How far the output of an experiment is saved."""

    place: str  # its address: `s3://runs/paul/mnist/4`
    # `waiting`: the next copy is not due; `saving`: a copy goes on, or the last one is to come; `saved`: the experiment
    # has ended and all is there; `incomplete`: it has ended and something is missing; `nothing`: no job has run
    state: Literal["waiting", "saving", "saved", "incomplete", "nothing"]
    saved_at: str | None  # RFC 3339: when the last complete copy ended; None: there is none
    files: int  # that the manifest names
    bytes: int  # their bytes together
    missing: int  # files whose present content was not there when the last try ended
    trouble: str  # why the last try failed, and what to do; empty: it did not
    done: int  # bytes of the copy that goes on  # names: of the API
    total: int
    restored: RestoredView | None  # None: no attempt has restored it


class SavedFileView(TypedDict):
    """One file in the store."""

    path: str  # below OUTPUT_DIR
    size: int  # bytes
    sha256: str
    changed: str  # RFC 3339: when the job changed it
    url: str  # where it is


class LeftOutFile(TypedDict):
    """One file that the last copy has left out, or stored elsewhere."""

    path: str
    why: str


class SavedView(SavedSummary):
    """What is saved of the output of an experiment."""

    id: str
    manifest: list[SavedFileView]  # sorted by path
    missing_paths: list[str]
    left_out: list[LeftOutFile]
