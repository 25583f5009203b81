"""Where a RISEML_HOME is: what tells a home from a copy of it, also after a reboot.

A store is copied with everything that is in it. So what it says of its home are facts about the folder and the machine
that no copy has: the inode of the folder, its path, the machine's id, and the built-in addresses of its network cards,
which tell a virtual machine from a clone that has the same id.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from dataclasses import asdict, replace
from pathlib import Path

from riseml.base.records import dataclass

_MACHINE_IDS = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_CARDS = Path("/sys/class/net")
_BUILT_IN = "0"  # `addr_assign_type` of an address that the card has from its maker


@dataclass(frozen=True, slots=True)
class HomeLocation:
    """A home's folder on its machine. Empty values are not known, and equal to any."""

    path: str  # without links
    inode: int  # inode of the folder
    device: int  # number of its file system; perhaps another one after a reboot
    machine: str = ""  # digest of the machine's id
    cards: tuple[str, ...] = ()  # built-in addresses of its network cards, sorted
    host: str = ""  # the machine's name, for people

    def is_on_machine_of(self, other: HomeLocation) -> bool:
        """Return True when nothing says that both are on different machines."""
        if self.machine and other.machine and self.machine != other.machine:
            return False
        return not (self.cards and other.cards) or bool(set(self.cards) & set(other.cards))

    def is_same_home(self, before: HomeLocation) -> bool:
        """Return True when this is the folder that was at `before`, and not a copy of it.

        A folder that was renamed keeps its inode, and nothing is left at its former path.
        """
        if not self.is_on_machine_of(before) or self.inode != before.inode:
            return False
        return self.path == before.path or (self.device == before.device and not is_other_folder(before.path, self))

    def is_shared_home(self, before: HomeLocation) -> bool:
        """Return True when this may be the folder at `before`, seen from another machine: file systems over a network
        show the same inode everywhere, and a copy has another one.
        """
        return self.inode == before.inode and self.path == before.path

    def write_text(self) -> str:
        """Return the text that `read_text` reads."""
        return json.dumps(asdict(self))


def read_text(text: str) -> HomeLocation | None:
    """Return the location that a text of `write_text` holds; None when it holds none."""
    try:
        document = json.loads(text)
        location = HomeLocation(str(document["path"]), int(document["inode"]), int(document["device"]))
        cards = tuple(str(card) for card in document["cards"])
        return replace(location, machine=str(document["machine"]), cards=cards, host=str(document["host"]))
    except (ValueError, KeyError, TypeError):
        return None


def find_location(home: Path) -> HomeLocation:
    """Return where a home is.

    Raises:
        OSError: it is not there, or cannot be looked at.
    """
    folder = home.stat()
    return HomeLocation(
        path=os.path.realpath(home),
        inode=folder.st_ino,
        device=folder.st_dev,
        machine=_read_machine(),
        cards=_list_cards(),
        host=socket.gethostname(),
    )


def is_other_folder(path: str, location: HomeLocation) -> bool:
    """Return True when something is at a path that is not the folder of `location`. What cannot be looked at may be."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return (status.st_ino, status.st_dev) != (location.inode, location.device)


def _read_machine() -> str:
    """Return a digest of the machine's id, which itself should stay on the machine; empty without one."""
    for path in _MACHINE_IDS:
        try:
            text = path.read_text("ascii", "replace").strip()
        except OSError:
            continue
        if text and text != "uninitialized":
            return hashlib.sha256(b"riseml home " + text.encode()).hexdigest()[:32]
    return ""


def _list_cards() -> tuple[str, ...]:
    """Return the addresses that the makers of the network cards gave them; those of bridges and tunnels change."""
    addresses = set()
    try:
        cards = sorted(os.listdir(_CARDS))
    except OSError:
        return ()
    for name in cards:
        card = _CARDS / name
        try:
            if (card / "device").exists() and (card / "addr_assign_type").read_text().strip() == _BUILT_IN:
                addresses.add((card / "address").read_text().strip())
        except OSError:  # a card that was pulled out, or one without an address
            continue
    return tuple(sorted(addresses - {"", "00:00:00:00:00:00"}))
