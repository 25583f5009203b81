"""The ID that a word stands for: a name or a tag where an ID is expected."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import replace

from riseml.base.annotations import Annotation
from riseml.base.errors import UsageError
from riseml.base.names import experiment_name, looks_like_id, parse_id
from riseml.model import Caller
from riseml.server.services import Stores
from riseml.store.annotations import Subject

_TAIL = re.compile(r"(?:[0-9]{1,9})?(?:(?:^|\.)[a-z][a-z-]*(?:\.[0-9]{1,9})?)?")
"""What may follow a name: the number of a member, a job, or both."""
_MOST_LISTED = 10


def find_id(word: str, caller: Caller, stores: Stores) -> str:
    """Return the canonical ID that a word stands for: `4` for `baseline`, `4.worker.1` for `baseline.worker.1`.

    An archived experiment counts only where nothing else has the name or tag.

    Raises:
        UsageError: nothing has it, or several experiments have it.
    """
    if looks_like_id(word):
        canonical_id = parse_id(word)
        if canonical_id.user in (None, caller.user):
            return str(replace(canonical_id, user=None))
    for head, tail in _split(unicodedata.normalize("NFC", " ".join(word.split()))):
        subjects = stores.annotations.find_subjects(caller.user, head) if head else {}
        if subjects:
            number, sub = _choose_subject(head, subjects)
            return str(parse_id(".".join(filter(None, (experiment_name(number, sub or None), tail)))))
    if looks_like_id(word):  # another user's: whether the caller sees it is said where it is shown
        return str(parse_id(word))
    raise UsageError(
        f"{word[:80]!r} is not an experiment ID, and no experiment has this name or tag",
        "an ID looks like 4, 144.1, 4.master or paul.4.worker.2; `riseml status -a` lists yours",
    )


def _split(word: str) -> Iterator[tuple[str, str]]:
    """Yield the word as a name and what follows it, the longest name first."""
    yield word, ""
    for dot in reversed([at for at, character in enumerate(word) if character == "."]):
        if _TAIL.fullmatch(word[dot + 1 :]) and word[dot + 1 :]:
            yield word[:dot], word[dot + 1 :]


def _choose_subject(word: str, subjects: Mapping[Subject, Annotation]) -> Subject:
    present = [subject for subject, annotation in subjects.items() if not annotation.archived] or list(subjects)
    if len(present) == 1:
        return present[0]
    listed = [_describe(subject, subjects[subject], word) for subject in present[:_MOST_LISTED]]
    more = f" and {len(present) - _MOST_LISTED} more" if len(present) > _MOST_LISTED else ""
    raise UsageError(
        f"{word[:80]!r} could be {', '.join(listed)}{more}",
        f"write the ID of the one that you mean: {experiment_name(present[-1].number, present[-1].sub or None)}",
    )


def _describe(subject: Subject, annotation: Annotation, word: str) -> str:
    kind = "name" if annotation.name == word else "tag"
    return f"{experiment_name(subject.number, subject.sub or None)} ({kind})"
