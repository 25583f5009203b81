"""What the build of an environment may take: memory, processes and time."""

from __future__ import annotations

from riseml.base.records import dataclass
from riseml.base.settings import DEFAULT_BUILD_TIME, Settings

_MIB = 2**20

PROCESSES = 4096
"""Processes and threads of one build at most, as of one job in a container."""

_LEAST_MEM = 8192  # MiB that a build may use on a smaller host, too: compilers need some GiB


@dataclass(frozen=True, slots=True)
class BuildLimits:
    """The settings of the user."""

    mem: int | None = None  # MiB; None: half of the host's memory, see `find_most_mem`
    seconds: float = DEFAULT_BUILD_TIME

    def find_most_mem(self, most_mem: int) -> int:
        """Return the MiB that a build may use: the setting, or half of what one job may use, and up to 8 GiB of it.

        Args:
            most_mem: MiB that one job without its own limit may use on the host.
        """
        if self.mem is not None:
            return self.mem
        return min(most_mem, max(most_mem // 2, _LEAST_MEM))


def read_build_limits(settings: Settings) -> BuildLimits:
    """Return the limits that the user has set."""
    return BuildLimits(None if settings.build_mem is None else settings.build_mem // _MIB, settings.build_time)


EXCESS_HINTS = {
    "memory": ("used more memory than a build may use", "RISEML_BUILD_MEM says how much it may use"),
    "processes": (f"had more than {PROCESSES:,} processes and threads", None),
    "seconds": ("took longer than a build may take", "RISEML_BUILD_TIME says how many seconds it may take"),
}
"""What a build exceeded, and the setting that allows more."""
