"""`scripts/release` makes a wheel that works in an empty environment of each Python, installed by pip and by uv.

`scripts/pythons` runs this module on Debian's Pythons, too.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from uv import find_uv_bin

from riseml import __version__
from scripts.releasing import main
from tests.support.command import plain_environ

ROOT = Path(__file__).parents[3]
OWN = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")


def _find_pythons() -> Iterator[Path]:
    """Yield the other Pythons of pyenv that riseml supports, of each minor version the newest."""
    pythons = {
        folder.name.rpartition(".")[0]: folder / "bin/python"
        for folder in sorted(Path.home().glob(".pyenv/versions/3.1[1-9].*"))
    }
    yield from (python for minor, python in pythons.items() if minor != ".".join(map(str, sys.version_info[:2])))


WAYS = [("pip", OWN), ("uv", OWN), *(("uv", python) for python in _find_pythons())]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the files of this one, one commit, and a section of the version in CHANGELOG.md."""
    folder = tmp_path_factory.mktemp("release") / "riseml"
    listing = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    changes = folder / "CHANGELOG.md"
    section = f"## [Unreleased]\n\n## [{__version__}] - 2026-01-01\n"
    changes.write_text(changes.read_text().replace("## [Unreleased]\n", section, 1))
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "All"]):
        subprocess.run([*GIT, *words], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def wheel(repository: Path) -> Path:
    """The wheel of a release."""
    with pytest.MonkeyPatch.context() as patch:
        for role in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{role}_NAME", "a")
            patch.setenv(f"GIT_{role}_EMAIL", "a@b")
        assert main(["--check", __version__], repository) == 0
        assert not (repository / "dist").exists()
        assert main([__version__], repository) == 0
        assert main([__version__], repository) == 1, "the tag is there"
    tags = subprocess.run(["git", "tag"], cwd=repository, capture_output=True, text=True, check=True).stdout
    assert tags == f"v{__version__}\n"
    (wheel,) = (repository / "dist").glob("*.whl")
    (sdist,) = (repository / "dist").glob("*.tar.gz")
    assert max(wheel.stat().st_size, sdist.stat().st_size) < 12e6
    return wheel


def _install(way: str, python: Path, wheel: Path, folder: Path) -> None:
    environ = plain_environ()
    if way == "pip":
        subprocess.run([python, "-m", "venv", folder], check=True)
        pip: list[str | Path] = [
            folder / "bin/pip",
            "install",
            "--quiet",
            "--no-compile",
            "--disable-pip-version-check",
        ]
        subprocess.run([*pip, "--require-hashes", "-r", ROOT / "requirements.lock"], check=True, env=environ)
        subprocess.run([*pip, "--no-deps", wheel], check=True, env=environ)
    else:
        subprocess.run([find_uv_bin(), "venv", "--quiet", "--python", python, folder], check=True)
        subprocess.run([find_uv_bin(), "pip", "install", "--quiet", "--python", folder, wheel], check=True)


@pytest.mark.parametrize(("way", "python"), WAYS, ids=[f"{way} {python.parents[1].name}" for way, python in WAYS])
def test_the_wheel_works_in_an_empty_environment(way: str, python: Path, wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    _install(way, python, wheel, environment)
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text("print(1)\n")
    environ = plain_environ(HOME=str(tmp_path), BROWSER="true")

    def riseml(*words: str) -> str:
        command: list[str | Path] = [environment / "bin/riseml", *words]
        result = subprocess.run(command, cwd=project, env=environ, capture_output=True, text=True, check=False)
        assert result.returncode == 0, (words, result.stderr)
        return result.stdout

    head: list[str | Path] = ["git", "-C", wheel.parents[1], "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(head, capture_output=True, text=True, check=True).stdout.strip()
    assert riseml("--version") == f"riseml {__version__} (commit {commit})\n"
    environ["RISEML_EXECUTOR"] = "process"
    assert [row["topic"] for row in json.loads(riseml("self", "check", "--json"))["findings"]][:2] == [
        "system",
        "python",
    ]
    riseml("init")
    riseml("validate")
    assert riseml("docs", "search").startswith("# A search for the best point")
    assert Path(riseml("docs", "search", "--open").strip()).is_file()
    topics = {topic["topic"] for topic in json.loads(riseml("docs", "--json"))["topics"]}
    assert {"getting-started", "changelog", "seeds"} <= topics
    assert "ai-toaster" in riseml("init", "--example")
    schemas = [Path(row["schema"]) for row in json.loads(riseml("self", "schemas", "--json"))["schemas"]]
    assert all(path.is_relative_to(environment) and path.is_file() for path in schemas)
    assert (schemas[0].parent / "deprecated-keys.json").is_file()
