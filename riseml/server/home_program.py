"""`python -m riseml.server.home_program`: what the command line does with a whole home, without a server.

The result is printed as one line of JSON. A problem is printed as its message and its hint, one line each, and the exit
code says its kind.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from riseml import wire
from riseml.base.errors import RisemlError
from riseml.base.folders import check_home
from riseml.base.settings import Settings, read_settings
from riseml.server.home_backup import LEFT_OUT, back_up_home, restore_home
from riseml.server.home_move import move_home


def main(words: Sequence[str]) -> int:
    """Do what the words say: `move`, `backup FILE`, `restore FILE`, `fingerprint`, `init LISTEN ADMIN CERT KEY NAMES`
    (empty words for a certificate of the own authority). Return 0, or the exit code of the problem."""
    try:
        settings = read_settings(os.environ)
        check_home(settings.home)
        print(json.dumps(_run(settings, words)))
    except RisemlError as error:
        print(" ".join(error.message.splitlines()))
        print(error.hint or "")
        return error.exit_code
    return 0


def _run(settings: Settings, words: Sequence[str]) -> object:
    match words:
        case ["move"]:
            return _move(settings)
        case ["backup", file]:
            return _back_up(settings, Path(file))
        case ["restore", file]:
            return _restore(settings, Path(file))
        case ["fingerprint"]:
            return _read_fingerprint(settings)
        case ["init", listen, admin, cert, key, *names]:
            return _init(settings, listen, admin, (cert, key), names)
        case _:
            raise ValueError(f"these words are unknown: {words}")


def _move(settings: Settings) -> wire.MovedHome:
    moved = move_home(settings)
    former = moved.former
    return {
        "home": str(settings.home),
        "former": None if former is None else former.path,
        "former_host": None if former is None else former.host,
        "retired": moved.retired,
        "environments_removed": moved.environments,
    }


def _back_up(settings: Settings, file: Path) -> wire.BackedUpHome:
    backup = back_up_home(settings, file)
    return {
        "file": str(file),
        "size": backup.size,
        "home": str(settings.home),
        "store": backup.has_store,
        "left_out": [name for name in LEFT_OUT if (settings.home / name).exists()],
    }


def _restore(settings: Settings, file: Path) -> wire.RestoredHome:
    backup = restore_home(settings, file)
    return {
        "home": str(settings.home),
        "former": backup.home.path,
        "former_host": backup.home.host,
        "store": backup.has_store,
        "owner": backup.owner,
    }


def _read_fingerprint(settings: Settings) -> str:
    from riseml.server.team_init import find_fingerprint

    return find_fingerprint(settings)


def _init(settings: Settings, listen: str, admin: str, files: tuple[str, str], names: Sequence[str]) -> wire.NewTeam:
    from riseml.server.team_init import TeamRequest, init_team
    from riseml.spec.server.types import CertificateFiles

    certificate = CertificateFiles(*files) if files[0] else None
    team = init_team(settings, TeamRequest(listen, admin, tuple(names), certificate))
    return {
        "file": str(settings.server_file),
        "listen": str(team.config.listen),
        "url": f"https://{team.names[0]}:{team.config.listen.port}",
        "names": list(team.names),
        "fingerprint": team.fingerprint,
        "admin": admin,
        "key": team.secret,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
