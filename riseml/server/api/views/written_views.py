"""What jobs wrote outside of OUTPUT_DIR, in the shape of the HTTP API."""

from __future__ import annotations

from collections.abc import Sequence

from riseml import wire
from riseml.server.written_lines import describe_written
from riseml.store.written_files import WrittenRecord


def show_written(records: Sequence[WrittenRecord]) -> wire.WrittenView | None:
    """Return the sum of the records of an experiment's jobs; None: there is nothing to say."""
    if not records:
        return None
    return {
        "kept_files": sum(one.kept_files for one in records),
        "kept_bytes": sum(one.kept_bytes for one in records),
        "kept_names": list(dict.fromkeys(name for one in records for name in one.kept_names)),
        "lost_files": sum(one.lost_files for one in records),
        "lost_bytes": sum(one.lost_bytes for one in records),
        "lost_names": list(dict.fromkeys(name for one in records for name in one.lost_names)),
        "more": any(one.more for one in records),
        "sentences": describe_written(records),
    }
