"""The patterns of `outputs`: where each begins, what it matches, and what is too much."""

from __future__ import annotations

import pytest

from riseml.spec.scalars.output_patterns import PatternPlace, parse_output_pattern
from riseml.spec.scalars.texts import BadText


@pytest.mark.parametrize(
    ("text", "place", "first"),
    [
        ("runs", PatternPlace.FOLDER, "runs"),
        ("./runs/", PatternPlace.FOLDER, "runs"),
        (".", PatternPlace.FOLDER, ""),
        ("logs/*/a", PatternPlace.FOLDER, "logs"),
        ("*.pt", PatternPlace.FOLDER, ""),
        ("~/results/*.csv", PatternPlace.HOME, "results"),
        ("/workspace/out", PatternPlace.ROOT, "workspace/out"),
    ],
)
def test_a_pattern_begins_in_a_folder(text: str, place: PatternPlace, first: str) -> None:
    pattern = parse_output_pattern(text)
    assert (pattern.place, pattern.first, pattern.text) == (place, first, text)
    assert pattern.is_below_folder is (place is PatternPlace.FOLDER)


@pytest.mark.parametrize(
    ("text", "path", "matches"),
    [
        ("runs", "runs/a/events", True),
        ("runs", "other/a", False),
        ("*.pt", "deep/model.pt", True),
        (".", "any/file", True),
        ("~/results/*.csv", "results/a.csv", True),
        ("~/results/*.csv", "results/a.txt", False),
    ],
)
def test_a_pattern_means_files_and_folders(text: str, path: str, *, matches: bool) -> None:
    assert parse_output_pattern(text).matches(path) is matches


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{name}}/a", "is not filled"),
        ("$HOME/a", "is not filled"),
        ("/*/a", "could mean every file of /"),
        ("~/*", "could mean every file of the home folder"),
        ("/data/x", "is in /data, which has no outputs"),
        ("a\nb", "is not a pattern of paths"),
        ("../x", "is not a pattern of paths"),
    ],
)
def test_other_texts_are_no_patterns(text: str, problem: str) -> None:
    with pytest.raises(BadText) as refused:
        parse_output_pattern(text)
    assert problem in refused.value.problem
    assert refused.value.hint
