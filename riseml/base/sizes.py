"""Sizes as people write them: `512M`, `500MB`, `16GiB`. They mean the same in riseml.yml, pool.yml and variables.

K, M, G and T are powers of 1024 in every spelling: `1G`, `1GB`, `1Gi` and `1GiB` are 1,073,741,824 bytes, as for
`docker run --memory`. `Gb` and `Gib` mean bits and are refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from riseml.base.records import dataclass

if TYPE_CHECKING:
    from decimal import Decimal

# not compiled here: every command imports this module, and few read a size
_SIZE = r"(?P<amount>[0-9]+(\.[0-9]*)?|\.[0-9]+) ?(?P<unit>(?P<prefix>[KMGTkmgt])([Ii]?[Bb]|[Ii])?)?"
_BITS = r"[KMGT][Ii]?b"
_PREFIXES = "KMGT"
_LONGEST = 40  # characters; a longer number is a mistake, and slow to compute with
SIZE_HINT = "write a number with a unit, such as 512M or 16GiB"


class BadSize(Exception):
    """A text that is not a size. `problem` follows the text in a sentence, `hint` says what to write instead."""

    def __init__(self, problem: str, hint: str = SIZE_HINT) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Size:
    """A size as it was written."""

    amount: Decimal  # in the unit of `prefix`
    prefix: str  # "K", "M", "G" or "T"; empty for a number without a unit

    def count_bytes(self) -> Decimal:
        """Return the exact number of bytes. Only for a size with a unit: a bare number means what its key says."""
        assert self.prefix, "a number without a unit has no size of its own"
        from decimal import Decimal  # a completion needs settings, and no sizes

        return self.amount * Decimal(1024) ** (_PREFIXES.index(self.prefix) + 1)


def parse_size(text: str) -> Size:
    """Return the amount and the unit of a size.

    Example: `parse_size("1.5 GB")` is `Size(Decimal("1.5"), "G")`.

    Raises:
        BadSize: the text is not a size, is negative, or counts bits.
    """
    from decimal import Decimal

    match = re.fullmatch(_SIZE, text)
    if text.startswith("-"):
        raise BadSize("is negative")
    if match is None or len(text) > _LONGEST:
        raise BadSize("is not a size")
    unit = match["unit"] or ""
    if re.fullmatch(_BITS, unit):
        raise BadSize(f"has the unit {unit}, which means bits", f"write {match['amount']}{match['prefix']}iB")
    return Size(Decimal(match["amount"]), (match["prefix"] or "").upper())
