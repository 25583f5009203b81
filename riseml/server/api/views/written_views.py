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
        "kept_files": sum(record.kept_files for record in records),
        "kept_bytes": sum(record.kept_bytes for record in records),
        "kept_names": list(dict.fromkeys(name for record in records for name in record.kept_names)),
        "lost_files": sum(record.lost_files for record in records),
        "lost_bytes": sum(record.lost_bytes for record in records),
        "lost_names": list(dict.fromkeys(name for record in records for name in record.lost_names)),
        "more": any(record.more for record in records),
        "sentences": describe_written(records),
    }
