"""The digest of a project: it names kind, path, content and executable bit, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from riseml.files.archives.digest import digest_entries
from riseml.files.archives.entries import ArchiveEntry, EntryKind

RUN = ArchiveEntry("run.sh", EntryKind.FILE, 5, 1000, executable=True)
ENTRIES = [
    (RUN, "1" * 64),
    (ArchiveEntry("a", EntryKind.FILE, 7, 2000), "2" * 64),
    (ArchiveEntry("link", EntryKind.LINK, target="a"), ""),
    (ArchiveEntry("empty", EntryKind.FOLDER), ""),
]


def test_a_project_has_the_digest_that_every_version_of_riseml_gives_it() -> None:
    assert digest_entries([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest_entries(ENTRIES) == "98da4662c7f63a8b6780682816a6a6d9a14a8c54b22576071574b4c2436cd764"


@pytest.mark.parametrize("path", ["z", "é", "\udcff", "a/b"])
def test_the_order_of_the_entries_does_not_count(path: str) -> None:
    entries = [*ENTRIES, (ArchiveEntry(path, EntryKind.FILE), "3" * 64)]
    shuffled = random.Random(7).sample(entries, len(entries))
    assert digest_entries(shuffled) == digest_entries(entries) != digest_entries(ENTRIES)


@pytest.mark.parametrize("fields", [{"mtime": 5}, {"size": 9}, {"content": "4" * 64}], ids=str)
def test_times_and_sizes_do_not_count(fields: dict[str, int | str]) -> None:
    changed = RUN._replace(**fields)  # type: ignore[arg-type]  # fields of one tuple
    assert digest_entries([(changed, "1" * 64), *ENTRIES[1:]]) == digest_entries(ENTRIES)


@pytest.mark.parametrize(
    "change",
    [
        lambda entry, content: (entry._replace(path="run"), content),
        lambda entry, content: (entry._replace(executable=False), content),
        lambda entry, content: (entry._replace(kind=EntryKind.FOLDER), content),
        lambda entry, _: (entry, "5" * 64),
        lambda entry, _: (entry._replace(target="a"), ""),
    ],
    ids=["path", "executable", "kind", "content", "target"],
)
def test_what_a_job_sees_counts(change: Callable[[ArchiveEntry, str], tuple[ArchiveEntry, str]]) -> None:
    assert digest_entries([change(*ENTRIES[0]), *ENTRIES[1:]]) != digest_entries(ENTRIES)
