"""The program of a helper container, which begins as root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from riseml.job_programs import file_service


def test_root_opens_a_folder_once_it_is_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root of a container, which has no CAP_DAC_OVERRIDE, may not open a folder of mode 0700 of another user."""
    done: list[object] = []

    def refuse(path: str, flags: int) -> int:
        done.append(path)
        raise PermissionError(path)

    monkeypatch.setattr(os, "open", refuse)
    for name in ("setgroups", "setgid", "setuid"):
        monkeypatch.setattr(os, name, lambda value, name=name: done.append((name, value)))
    with pytest.raises(PermissionError):
        file_service.main(str(tmp_path), "", "owner")
    groups, user = os.getgid(), os.getuid()
    assert done == [("setgroups", []), ("setgid", groups), ("setuid", user), str(tmp_path)]
