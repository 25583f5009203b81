"""Errors of paths and files as users see them: one sentence, and what to do next."""

from __future__ import annotations

import pytest

from riseml.base.errors import Conflict, EngineError, NotFound, Refused, RisemlError, UsageError
from riseml.files.storage_files import describe_trouble, translate_files_error
from riseml.job_programs.folder_paths import FileErrorKind, FilesError


@pytest.mark.parametrize("kind", FileErrorKind, ids=lambda kind: kind.name)
def test_every_trouble_is_one_sentence_about_its_path(kind: FileErrorKind) -> None:
    error = describe_trouble(FilesError(kind, "a/b", "Input/output error"), "output://4")
    assert error.message.startswith("output://4/a/b ")
    assert not error.message.endswith(".")
    assert error.hint or kind is FileErrorKind.FAILED


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (FileErrorKind.MISSING, NotFound),
        (FileErrorKind.BAD_PATH, UsageError),
        (FileErrorKind.LINK, Refused),
        (FileErrorKind.FULL, Refused),
        (FileErrorKind.CHANGED, Conflict),
        (FileErrorKind.FAILED, EngineError),
    ],
)
def test_a_trouble_has_the_exit_code_of_its_kind(kind: FileErrorKind, error: type[RisemlError]) -> None:
    with pytest.raises(error) as raised, translate_files_error("output://4"):
        raise FilesError(kind, "a")
    assert type(raised.value) is error


@pytest.mark.parametrize(
    ("path", "place", "words"), [("", "output://4", "output://4"), ("a", "", "a"), ("a/b", "data://", "data:///a/b")]
)
def test_a_path_is_named_below_its_place(path: str, place: str, words: str) -> None:
    assert describe_trouble(FilesError(FileErrorKind.MISSING, path), place).message == f"{words} does not exist"


def test_the_words_of_the_system_are_shown_where_they_say_more() -> None:
    texts = [
        describe_trouble(FilesError(kind, "a", "Operation not permitted"), "").message
        for kind in (FileErrorKind.DENIED, FileErrorKind.MISSING)
    ]
    assert texts == ["a may not be used so: Operation not permitted", "a does not exist"]
