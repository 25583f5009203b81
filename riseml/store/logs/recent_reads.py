"""What readers have read last from logs that grow: many readers that follow the same log are at the same place, so that
one of them reads the file for all.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

from riseml.store.logs.blocks import LogBlock
from riseml.store.logs.read_position import ReadPosition

LARGEST_READ = 1 << 14
"""Bytes of a read that is kept; a longer one is that of a reader which is behind the others."""

_MOST_READS = 64

Read = tuple[list[LogBlock], ReadPosition]
"""The lines that were read, and where to continue. Nobody changes them."""


class RecentReads:
    """The last reads, by what was read. Safe from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reads: OrderedDict[Hashable, Read] = OrderedDict()

    def find_read(self, key: Hashable) -> Read | None:
        """Return what was read; None: it is not known any more."""
        with self._lock:
            return self._reads.get(key)

    def keep(self, key: Hashable, read: Read) -> None:
        """Keep a read, and forget the oldest one where there are too many."""
        with self._lock:
            self._reads[key] = read
            if len(self._reads) > _MOST_READS:
                self._reads.popitem(last=False)

    def forget(self) -> None:
        """Forget all reads: a log has got another file."""
        with self._lock:
            self._reads.clear()
