"""`cp`: the names of what is copied."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer
from tests.unit.cli.listings import answer_listing


def test_a_copy_never_overwrites_its_own_copies(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "model.pt").write_text(name)
    answer_listing(fake_server)
    done = riseml("cp", "a/model.pt", "b/model.pt", "data://models/")
    assert (done.code, "a/model.pt and b/model.pt" in done.err, "into two folders" in done.err) == (2, True, True)
    assert not any("PUT" in one or "POST" in one for one in fake_server.asked)


def test_a_copy_has_the_name_that_the_user_typed(riseml: Riseml, fake_server: FakeServer, folder: Path) -> None:
    (folder / "model-7%").write_text("x")
    (folder / "latest.pt").symlink_to("model-7%")
    answer_listing(fake_server)
    done = riseml("cp", "--dry-run", "latest.pt", "model-7%", "data://models/")
    targets = [line.rpartition("data://")[2] for line in (done.out + done.err).splitlines() if "->" in line]
    assert (done.code, targets) == (0, ["models/latest.pt  1 B", "models/model-7%  1 B"])
