"""Where experiments come from. Standard library only."""

from __future__ import annotations

from riseml.records import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an experiment comes from, for a later run of it. No decision depends on it."""

    file: str = ""  # its riseml.yml, as the user named it
    revision: str = ""  # the git commit of the project, in hex; empty: no git repository
    clean: bool | None = None  # the files were those of the commit; None: not known
    rerun_of: str = ""  # the experiment that it repeats; empty: none
    missing: tuple[str, ...] = ()  # paths of the project that git had not filled: submodules, pointers of Git LFS


NO_ORIGIN = Origin()
