"""The folder of a build, what makers write into it and read from it, and how its failure reaches the user."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from riseml.base.errors import DiskFull, EngineError
from riseml.executors.environments.makers import (
    BUILDER,
    ORDER,
    PROJECT,
    SEE_LOG,
    make_environment_variables,
    raise_for_end,
    read_build_end,
    read_order,
    write_build,
)
from riseml.model import Image
from tests.support.builds import make_environment_request


def test_a_build_has_its_order_and_the_program_that_makes_it(tmp_path: Path) -> None:
    order = make_environment_request(tmp_path / "ab12", Image("python", ("pip install a", "true")), [])
    write_build(order, {"server": "5e17e4"})
    content = read_order(order.place)
    assert content is not None
    assert (content["target"], content["server"]) == (str(tmp_path / "ab12"), "5e17e4")
    assert [shown for shown, _ in content["steps"]] == ["pip install a", "true"]
    assert stat.S_IMODE(order.place.stat().st_mode) == 0o700
    assert stat.S_IMODE((order.place / ORDER).stat().st_mode) == 0o600, "steps may have secrets in them"
    assert "import riseml" not in (order.place / BUILDER).read_text()
    assert list((order.place / PROJECT).iterdir()) == []


def test_a_folder_without_an_order_is_no_build(tmp_path: Path) -> None:
    assert read_order(tmp_path) is None
    (tmp_path / ORDER).write_text("[]")
    assert read_order(tmp_path) is None
    assert read_build_end(tmp_path) is None
    (tmp_path / "end.json").write_text(json.dumps({"error": ""}))
    assert read_build_end(tmp_path) == {"error": ""}


@pytest.mark.parametrize(
    ("stage", "hint"),
    [("packages", "name another version"), ("steps", None), ("environment", SEE_LOG), (None, SEE_LOG)],
)
def test_a_failed_build_tells_what_the_user_can_do(stage: str | None, hint: str | None) -> None:
    with pytest.raises(EngineError, match="it failed") as raised:
        raise_for_end({"error": "it failed", "stage": stage}, "name another version")
    assert (raised.value.hint, raised.value.permanent) == (hint, True)


def test_a_build_that_has_filled_its_disk_says_so_and_a_complete_one_raises_nothing() -> None:
    with pytest.raises(DiskFull, match="it failed"):
        raise_for_end({"error": "it failed", "full": True, "stage": "steps"})
    raise_for_end({"error": "", "full": True})
    raise_for_end({})


def test_the_programs_of_an_environment_come_before_others() -> None:
    variables = make_environment_variables(Path("/e/ab12"), "/usr/bin:/bin")
    assert variables == {"VIRTUAL_ENV": "/e/ab12", "PATH": "/e/ab12/bin:/usr/bin:/bin"}
