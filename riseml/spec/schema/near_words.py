"""Words that are like others: typing mistakes of keys, and similar values and names. Pure, and quick to import."""

from __future__ import annotations

from collections.abc import Iterable

_LONG = 8  # letters of a word that may have two mistakes


def suggest_word(text: str, words: Iterable[str]) -> str | None:
    """Return the word that is most like a value or a name; None when no word is like it.

    Example:
        >>> suggest_word("helping", ["decides", "helps", "serves"])
        'helps'
    """
    import difflib  # only a file with a mistake needs it

    matches = difflib.get_close_matches(text.lower(), list(words), 1, 0.65)
    return matches[0] if matches else None


def find_near_word(word: str, words: Iterable[str]) -> str | None:
    """Return the one word from which `word` differs by a typing mistake; None when there is none, or several.

    Example:
        >>> find_near_word("parametres", ["parameters", "env"]), find_near_word("volumes", ["roles"])
        ('parameters', None)
    """
    typed = word.lower()
    most = 2 if len(typed) >= _LONG else 1
    edits = {key: 0 if squash(key) == squash(typed) else count_edits(typed, key.lower(), most) for key in words}
    least = min(edits.values(), default=most + 1)
    nearest = [key for key, count in edits.items() if count == least]
    return nearest[0] if least <= most and least < len(typed) and len(nearest) == 1 else None


def count_edits(word: str, other: str, most: int) -> int:
    """Return how many letters are missing, added, replaced or exchanged with the next one, as far as `most` and one."""
    if abs(len(word) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(word, 1):
        two_before, before, row = before, row, [at]
        for place, expected in enumerate(other, 1):
            cost = min(before[place] + 1, row[place - 1] + 1, before[place - 1] + (letter != expected))
            if at > 1 and place > 1 and letter == other[place - 2] and word[at - 2] == expected:
                cost = min(cost, two_before[place - 2] + 1)
            row.append(cost)
    return row[-1]


def squash(key: str) -> str:
    """Return a key in lower case, without hyphens, underscores and what is before a dot.

    Example:
        >>> squash("maxRetries"), squash("nvidia.com/gpu")
        ('maxretries', 'com/gpu')
    """
    return "".join(letter for letter in key.lower().rpartition(".")[2] if letter not in "_- ")
