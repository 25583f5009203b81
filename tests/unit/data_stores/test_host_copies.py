"""Notes about the copies of sets on hosts, which outlive the server."""

from __future__ import annotations

from pathlib import Path

from riseml.base.names import HostName
from riseml.data_stores.host_copies import HostCopies, HostCopy


def test_notes_of_copies_outlive_the_server(tmp_path: Path) -> None:
    notes = HostCopies(tmp_path / "copies")
    first = HostCopy("k1", "v1", "s3://a/b", 10, 2, whole=True, used=5.0)
    notes.note(HostName("h1"), first)
    notes.note(HostName("h1"), HostCopy("k2", "v2", "s3://a/c", 10, 0, whole=False, used=4.0))
    notes.note(HostName("h2"), first)
    notes.drop(HostName("h2"), "k1")
    again = HostCopies(tmp_path / "copies")
    assert [copy.key for copy in again.list_copies(HostName("h1"))] == ["k2", "k1"], "the least used comes first"
    assert (again.find_copy(HostName("h1"), "k1"), again.list_copies(HostName("h2"))) == (first, [])
    (tmp_path / "copies" / "h1.json").write_text("[{")
    assert HostCopies(tmp_path / "copies").list_copies(HostName("h1")) == []


def test_a_copy_is_forgotten_also_where_its_note_cannot_be_removed(tmp_path: Path) -> None:
    notes, host = HostCopies(tmp_path / "copies"), HostName("h1")
    notes.note(host, HostCopy("k1", "v1", "s3://a/b", 10, 2, whole=True, used=5.0))
    (tmp_path / "copies" / "h1.new").mkdir()
    notes.drop(host, "k1")
    assert notes.list_copies(host) == []
