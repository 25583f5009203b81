"""Functions that a job can import by their path, and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def train(epochs: int = 1) -> int:
    return epochs


def greet(message: str, source: str = "") -> str:
    return message + source


def make_inner() -> Callable[[], None]:
    def inner() -> None:
        pass

    return inner


class Trainer:
    def train(self) -> None:
        pass


def _rename(function: Callable[..., Any]) -> Callable[..., Any]:
    function.__qualname__ = "inner_name"
    return function


@_rename
def decorated() -> None:
    pass
