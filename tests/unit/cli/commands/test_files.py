"""`ls`, `cat` and `du` of files of this machine."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.cli.conftest import Riseml


def test_local_files_are_printed_and_counted(riseml: Riseml, folder: Path) -> None:
    (folder / "odd").write_bytes(b"\x1b[2Jx\xff\n" + b"y" * 3)
    printed = riseml("cat", "odd", "train.py")
    assert (printed.code, printed.out) == (0, "x\\xff\nyyy\nprint('toast')\n")
    assert riseml("ls", "t*.py").out == "train.py\n"
    assert json.loads(riseml("du", "odd", "--json").out) == {"path": "odd", "files": 1, "size": 10}
    assert riseml("cat", "none").code == 3


def test_several_paths_are_shown_with_their_addresses(riseml: Riseml, folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "model.pt").write_text(name)
    assert riseml("ls", "*/model.pt").out == "a/model.pt\nb/model.pt\n"
    assert riseml("ls", "a", "train.py", "b/").out == "train.py\na:\nmodel.pt\nb:\nmodel.pt\n"
    assert riseml("ls", "a").out == "model.pt\n"
