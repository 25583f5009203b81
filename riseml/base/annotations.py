"""What users say about a run beside its riseml.yml: a name, tags, a note, a star, and whether lists leave it out.

Names and tags are words that stand for an ID on a command line; so none of them looks like an ID. They are normalised
(Unicode NFC), so that a word which is typed on another keyboard is the same word. A note is kept as it is written.
"""

from __future__ import annotations

import unicodedata
from typing import Literal

from riseml.base.errors import UsageError
from riseml.base.names import looks_like_id
from riseml.base.records import dataclass

LONGEST_NAME = 64  # characters
LONGEST_TAG = 64  # characters
LONGEST_NOTE = 20_000  # characters
MOST_TAGS = 50  # tags of one experiment or set

_SIGNS = "_.-+=@"
_WORD_CATEGORIES = "LMN"  # letters, marks on letters, numbers
_FORM = "letters, digits and _ . - + = @"


class BadAnnotation(Exception):
    """A name, tag or note that is not allowed. `problem` follows the text in a sentence, `hint` says what to write."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Annotation:
    """What users have said about one experiment, or about a set as a whole."""

    name: str = ""  # empty: none
    tags: tuple[str, ...] = ()  # in the order in which they were added
    note: str = ""  # Markdown, as it was written
    starred: bool = False
    archived: bool = False  # lists leave it out once it has ended

    def list_marks(self) -> str:
        """Return `starred`, `archived`, or both with a comma between them."""
        return ",".join(["starred"] * self.starred + ["archived"] * self.archived)

    def add_set(self, of_set: Annotation) -> Annotation:
        """Return what holds for a member of a set: what is said about it, and else about the set; the tags of both."""
        return Annotation(
            self.name or of_set.name,
            tuple(dict.fromkeys((*self.tags, *of_set.tags))),
            self.note or of_set.note,
            self.starred or of_set.starred,
            self.archived or of_set.archived,
        )


NO_ANNOTATION = Annotation()


def read_name(text: str) -> str:
    """Return a name in its normal form.

    Raises:
        BadAnnotation: it is not allowed.

    Example: `read_name(" lr warmup ")` is `"lr warmup"`.
    """
    name = unicodedata.normalize("NFC", " ".join(text.split(" "))).strip(" ")
    _check_word(name, "name", LONGEST_NAME, f"{_FORM}, and spaces between them", spaces=True)
    return name


def read_tag(text: str) -> str:
    """Return a tag in its normal form.

    Raises:
        BadAnnotation: it is not allowed.
    """
    tag = unicodedata.normalize("NFC", text.strip(" "))
    _check_word(tag, "tag", LONGEST_TAG, _FORM, spaces=False)
    return tag


def is_word(text: str) -> bool:
    """Return True for a text that may be a name or a tag, or one with a job behind it: `baseline.worker.1`."""
    return all(_is_letter(character) or character in f"{_SIGNS} " for character in text) and bool(text.strip())


def read_note(text: str) -> str:
    """Return a note as it is; every text of a limited length that has no NUL and is Unicode is one.

    Raises:
        BadAnnotation: it is not allowed.
    """
    if len(text) > LONGEST_NOTE:
        raise BadAnnotation(f"has {len(text):,} characters", f"at most {LONGEST_NOTE:,} are kept; put more into a file")
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise BadAnnotation("has bytes that are not UTF-8 text", "write it as UTF-8, without NUL")
    return text


_READERS = {"name": read_name, "tag": read_tag, "note": read_note}


def read_text(kind: Literal["name", "tag", "note"], text: str) -> str:
    """Return a name, a tag or a note of a user as riseml keeps it.

    Raises:
        UsageError: it is not allowed.
    """
    try:
        return _READERS[kind](text)
    except BadAnnotation as bad:
        subject = "the note" if kind == "note" else f"the {kind} {text[:80]!r}"
        raise UsageError(f"{subject} {bad.problem}", bad.hint) from None


def _check_word(word: str, kind: str, longest: int, form: str, *, spaces: bool) -> None:
    if not word:
        raise BadAnnotation("is empty", f"a {kind} has {form}")
    if len(word) > longest:
        raise BadAnnotation(f"has {len(word):,} characters", f"a {kind} has at most {longest}")
    if looks_like_id(unicodedata.normalize("NFKC", word)):
        raise BadAnnotation(
            "looks like the ID of an experiment", f"a {kind} stands for an ID, and is none: write {_suggest(word)}"
        )
    if not (_is_letter(word[0]) or word[0] == "_"):
        raise BadAnnotation(f"begins with {word[0]!r}", f"a {kind} begins with a letter, a digit or _")
    odd = next((sign for sign in word if not (_is_letter(sign) or sign in _SIGNS or (spaces and sign == " "))), None)
    if odd is not None:
        raise BadAnnotation(f"has the character {odd!r}", f"a {kind} has {form}")


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in _WORD_CATEGORIES


def _suggest(word: str) -> str:
    """Return a word like this one that no ID looks like: `v4` for `4`, `v18-2` for `18.2`."""
    dashed = word.replace(".", "-")
    return f"v{dashed}" if dashed[:1].isdigit() else dashed
