"""Under which uid and gid the jobs of a user run, on a team's server.

The first that says it: `ids` in server.yml, then what an admin has stored with the user, then the system, when
server.yml says `from: system`. The system is passwd, LDAP or whatever its name service has. A user whom nobody maps may
look at things, and submits nothing.
"""

from __future__ import annotations

import os
import pwd
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from riseml.base.accounts import NO_UID, check_ids
from riseml.base.errors import Refused, UsageError
from riseml.base.records import dataclass
from riseml.model import Owner
from riseml.spec.server.types import UserId, UserSource, UsersSection

_USERS_GROUP = 100  # the group `users`, the first group of all people on some systems
_PATIENCE = 3.0  # seconds for an answer of the system
_FRESH = 60.0  # seconds for which an answer is not asked for again
_ROOT = 0

LookUp = Callable[[str], UserId | None]


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the system has said about a name."""

    ids: UserId | None  # None: it does not know the name
    at: float  # by the clock


@dataclass(frozen=True, slots=True)
class _SystemQuestion:
    """A question to the system that is under way."""

    answer: Future[UserId | None]
    until: float  # when nobody waits for it any more, by the clock


class SystemUsers:
    """Asks the system for the ids of users. A directory that hangs holds up no request for longer than the patience.

    Args:
        look_up: asks the system; None: it does not know the name.
        patience: seconds.
        clock: seconds, from any beginning.
    """

    def __init__(
        self,
        look_up: LookUp | None = None,
        patience: float = _PATIENCE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._look_up = look_up or _ask_system
        self._patience = patience
        self._clock = clock
        self._lock = threading.Lock()
        self._answers: dict[str, _Answer] = {}
        self._questions: dict[str, _SystemQuestion] = {}  # one for each name

    def find_ids(self, name: str) -> UserId | None:
        """Return the ids of a name; None: the system does not know it, or does not answer and never has.

        An earlier answer counts while the system does not answer. Only the first callers wait for a question.
        """
        with self._lock:
            earlier = self._answers.get(name)
            if earlier is not None and self._clock() - earlier.at < _FRESH:
                return earlier.ids
            question = self._questions.get(name)
            if question is None:
                question = self._questions[name] = _SystemQuestion(Future(), self._clock() + self._patience)
                threading.Thread(target=self._ask, args=(name, question.answer), name="user-ids", daemon=True).start()
        try:
            return question.answer.result(max(0.0, question.until - self._clock()))
        except (TimeoutError, OSError):
            return None if earlier is None else earlier.ids

    def _ask(self, name: str, answer: Future[UserId | None]) -> None:
        try:
            ids = self._look_up(name)
        except OSError as error:
            with self._lock:
                del self._questions[name]
            answer.set_exception(error)
            return
        with self._lock:
            self._answers[name] = _Answer(ids, self._clock())
            del self._questions[name]
        answer.set_result(ids)


class UserIds:
    """The ids of the users of one server.

    Args:
        section: of server.yml.
        system: answers where server.yml says `from: system`.
    """

    def __init__(self, section: UsersSection, system: SystemUsers | None = None) -> None:
        self._listed = dict(section.ids)
        self._system = (system or SystemUsers()) if section.source is UserSource.SYSTEM else None

    def find_owner(self, name: str, uid: int | None = None, gid: int | None = None) -> Owner:
        """Return the owner of a user's experiments; its ids are `NO_UID` when nobody maps the user.

        Args:
            name: of the user.
            uid: that an admin has stored with the user; None: none.
            gid: likewise; None: the same number.
        """
        stored = None if uid is None else UserId(uid, uid if gid is None else gid)
        if stored is not None and any(stored.uid == ids.uid and name != other for other, ids in self._listed.items()):
            stored = None  # server.yml gives this uid to somebody else, who would share all outputs
        ids = self._listed.get(name) or stored or (self._system.find_ids(name) if self._system else None)
        return Owner(name, NO_UID, NO_UID) if ids is None else Owner(name, ids.uid, ids.gid)


def check_owner(owner: Owner, euid: int | None = None) -> None:
    """Check that jobs may run as a user of a team's server.

    Args:
        owner: of the experiment.
        euid: uid of the server; None: that of this process.

    Raises:
        Refused: nobody maps the user, or to ids of the system; or the server cannot give outputs to the user.
    """
    where = f"an admin adds `{owner.user}` to `users: ids` in server.yml, or `riseml user update {owner.user} --uid N`"
    if NO_UID in (owner.uid, owner.gid):
        raise Refused(f"nobody has said under which uid the jobs of {owner.user} run", where)
    try:
        check_ids(owner.uid, None if owner.gid == _USERS_GROUP else owner.gid)
    except UsageError as error:
        raise Refused(f"the jobs of {owner.user} would run as {owner.uid}:{owner.gid}, and {error}", where) from None
    euid = os.geteuid() if euid is None else euid
    if euid not in (_ROOT, owner.uid):
        raise Refused(
            f"this server runs as uid {euid}, and cannot make an output folder for uid {owner.uid}",
            "the server of a team runs as root, as `riseml server unit` starts it",
        )


def _ask_system(name: str) -> UserId | None:
    """Return what passwd, LDAP or another name service says.

    Raises:
        OSError: none of them answers.
    """
    try:
        row = pwd.getpwnam(name)
    except KeyError:
        return None
    return UserId(row.pw_uid, row.pw_gid)
