"""docs/getting-started.md as a newcomer follows it: every command of the page, in its order, in one shell."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.command import plain_environ
from tests.support.waiting import DEADLINE

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/getting-started.md"
_BLOCK = re.compile(r'^```(sh|\w+ title="([\w.-]+)")\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_SHOWN = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _write_script(page: str) -> Iterator[str]:
    """Yield the lines of a script: the files of the page are written where it shows them, and its commands are run."""
    for kind, file, text in _BLOCK.findall(page):
        yield text if kind == "sh" else f"cat >{shlex.quote(file)} <<'END OF {file}'\n{text}END OF {file}"


def test_each_command_of_the_page_works(tmp_path: Path) -> None:
    page = PAGE.read_text()
    script = "\n".join(_write_script(page))
    assert (script.count("riseml train"), script.count("cat >")) == (4, 3)
    caches = {"PIP_CACHE_DIR": str(Path.home() / ".cache/pip"), "UV_CACHE_DIR": str(Path.home() / ".cache/uv")}
    environ = caches | plain_environ(HOME=str(tmp_path))
    try:
        result = subprocess.run(
            ["bash", "-euxo", "pipefail", "-c", script],
            cwd=ROOT,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=20 * DEADLINE,
        )
        assert result.returncode == 0, (result.stdout[-3000:], result.stderr[-3000:])
    finally:
        subprocess.run([tmp_path / "riseml-env/bin/riseml", "server", "stop"], env=environ, check=False)
    for line in "".join(_SHOWN.findall(page)).splitlines():
        assert line.rpartition(" after ")[0] in result.stdout, f"the page shows {line!r}"
    ends = re.findall(r"^(?:Experiment|Set) (\d) FINISHED", result.stdout, re.MULTILINE)
    assert ends == ["1", "1", "2", "3", "4"], "`riseml logs 1` shows the end of 1 once more"
    assert "helper 1 of 2, the leader is at " in result.stdout
    assert "every key of riseml.yml" in result.stdout, "the installed package has the pages"
