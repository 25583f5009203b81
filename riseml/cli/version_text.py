"""What `riseml --version` prints: the version, and the commit that the package was made of."""

from __future__ import annotations

import subprocess
from pathlib import Path

from riseml import __version__


def describe_version(package: Path = Path(__file__).parents[1]) -> str:
    """Return the version with the commit: of the wheel, or of the repository that the package is in.

    A `+` behind a commit says that files differed from it when the wheel was made.
    """
    commit = _read_commit(package)
    return f"riseml {__version__} (commit {commit})" if commit else f"riseml {__version__}"


def _read_commit(package: Path) -> str:
    if (package / "commit").is_file():
        return (package / "commit").read_text(encoding="utf-8").strip()
    if not (package.parent / ".git").exists():
        return ""
    command = ["git", "-C", str(package.parent), "rev-parse", "--short=12", "HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:  # there is no git
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""
