"""A large project on a file system whose files can share blocks: unpacked once for an experiment, beside its jobs.

Each job has its own files, which share the blocks of the first copy until the job writes them. So eight jobs take the
disk space of one. On other file systems each job unpacks the project.
"""

from __future__ import annotations

import threading
from pathlib import Path

from riseml.executors.environments.project_files import copy_files, unpack_project
from riseml.executors.environments.shared_blocks import SMALL_FILE, can_share_blocks
from riseml.executors.supervision.supervisor import read_boot_id
from riseml.executors.this_machine.removal import fill_new_folder
from riseml.files.archives.project_files import KeptState, ProjectFiles

_LARGE = 16 << 20  # bytes of a project; below that, sharing saves little even with eight jobs
_COPIES = "copies"  # no job has this name


class ReflinkedCode:
    """Writes the projects of jobs. Several threads may call it at once."""

    def __init__(self) -> None:
        self._unpacking = threading.Lock()

    def write_project(self, project: ProjectFiles, target: Path, experiment: Path) -> None:
        """Write a project into an empty folder.

        Args:
            project: its files.
            target: the folder, on the file system of `experiment`.
            experiment: folder of the experiment; the first copy is in it, and goes with it.

        Raises:
            EngineError: a file is damaged, or an entry leads out of the folder.
            OSError: a folder cannot be written.
        """
        if isinstance(project, KeptState) and _is_worth_it(project) and can_share_blocks(experiment):
            copy_files(self._unpack_once(project, experiment / _COPIES), target)
        else:
            unpack_project(project, target)

    def _unpack_once(self, project: KeptState, copies: Path) -> Path:
        # A machine that lost its power may have kept the name of a copy and not its blocks.
        copy = copies / f"{read_boot_id()}-{project.identity}"
        with self._unpacking:
            if not copy.exists():
                copies.mkdir(mode=0o700, exist_ok=True)
                with fill_new_folder(copy) as fresh:
                    unpack_project(project, fresh)
        return copy


def _is_worth_it(project: KeptState) -> bool:
    """Return True for a project of large files: unpacking many small files takes no longer than copying them."""
    return project.size >= max(_LARGE, project.count * SMALL_FILE)
