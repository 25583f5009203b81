"""Variables of the user's environment that a command sends to the server."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer


def test_variables_are_passed_on_from_the_user_s_environment(
    riseml: Riseml, fake_server: FakeServer, folder: Path
) -> None:
    with (folder / "riseml.yml").open("a") as file:
        file.write("  env: [TOKEN]\n")
    missing = riseml("train", "-d")
    assert (missing.code, fake_server.bodies) == (2, [])
    assert "TOKEN" in missing.err
    assert "export TOKEN=" in missing.err
    (folder / "riseml.yml").write_text((folder / "riseml.yml").read_text().replace("[TOKEN]", "[TOKEN, KEY]"))
    several = riseml("train", "-d").err
    assert "train.env passes TOKEN, KEY on to the jobs, but here they are not set" in several
    assert "set them first: `export TOKEN=... KEY=...`" in several
    (folder / "riseml.yml").write_text((folder / "riseml.yml").read_text().replace("[TOKEN, KEY]", "[TOKEN]"))
    riseml("train", "-d", "--allow-env", "TOKEN", environ={"TOKEN": "secret", "OTHER": "x"})
    assert fake_server.bodies[0]["environment"] == {"TOKEN": "secret"}
