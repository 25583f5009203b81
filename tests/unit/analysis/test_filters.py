"""The conditions of `--where`: which rows they choose, and how a mistake is named."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.analysis.column_names import quote_name
from riseml.analysis.filters import list_filter_notes, parse_where
from riseml.analysis.rows import Columns
from riseml.base.annotations import NO_ANNOTATION, Annotation
from riseml.base.errors import UsageError
from tests.unit.analysis.result_rows import ROWS, choose, make_row, names


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("lr<0.01", ["3", "4"]),
        ("lr <= 1e-2", ["2", "3", "4"]),
        ("lr=0.1", ["10"]),  # the text that a row has
        ("lr=1e-1", ["1"]),
        ("lr=0.10", ["1", "10"]),  # a text that no row has: the number
        ("lr='0.10'", []),
        ("lr='0.1'", ["10"]),
        ("lr!=0.1", ["1", "2", "3", "4", "5"]),
        ("lr>=0.1 and lr<=0.1", ["1", "10"]),
        ("lr == auto", ["5"]),
        ("lr != auto", ["1", "2", "3", "4", "10"]),
        ("opt='adam w'", ["1", "2", "3", "4"]),
        ('opt != "adam w"', ["5", "10"]),
        ("layers>9", ["5"]),
        ("accuracy>=0.9", ["4", "5", "10"]),
        ("accuracy.max >= 0.9 and accuracy.max<0.99", ["1", "2", "10"]),
        ("accuracy.min<0.5", ["1"]),
        ("accuracy.count>1, state = FINISHED", ["1", "2"]),
        ("accuracy.step=7 && time<=2m", ["1", "2"]),
        ("metrics.accuracy>0 AND parameters.lr>0.05", ["1", "10"]),
        ("host=h1 and workers=1 and time>9m", ["10"]),
        ("id=144.3", ["3"]),
        ("id=144.1", ["1"]),  # 144.10 is another one
        ("id=144.10", ["10"]),
        ("time=1m", ["1"]),
        ("time>1m30s and time<1h", ["2", "3", "4", "5", "10"]),
        ("-time>1m30s", ["1"]),
        ("opt:AM", ["1", "2", "3", "4"]),  # a part of the text, in any case
        ("-opt:adam, -id:144.10", ["5"]),
        ("-star and state:FINI", ["1", "2", "3", "10"]),
    ],
)
def test_conditions_choose_rows(condition: str, wanted: list[str]) -> None:
    assert names(choose(ROWS, condition)) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a condition is missing at the end"),
        ("lr", "no condition begins at 'lr'"),
        ("lr<", "no condition begins at 'lr<'"),
        ("lr<0.1 and", "a condition is missing at the end"),
        ("lr<0.1 lr>1", "no condition begins at 'lr>1'"),
        ("lr<0.1 or lr>1", "`or` is not supported: run the command twice"),
        ("lr<0.1 || lr>1", "`or` is not supported"),
        ("(lr<0.1)", "parentheses are not supported"),
        ("lr<fast", "< compares numbers, and 'fast' is not a number"),
        ("opt='adam", 'no condition begins at "opt=\'adam"'),
        ("lr=>1", "no condition begins at"),
        ("x" * 2000, "--where has 2,000 characters"),
        (",".join(["a=1"] * 60), "no condition begins at"),
        ("time>soon", "> compares numbers, and 'soon' is not a number"),
        ("--time=1", "no condition begins at '--time=1'"),
        ("opt:", "no condition begins at 'opt:'"),
        ("- opt:a", "no condition begins at '- opt:a'"),
    ],
)
def test_an_invalid_condition_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_where(text)
    assert message in refused.value.message


@given(st.text(alphabet="lraor<>=! '\"().,&|0123456789e-\n", max_size=30))
@settings(max_examples=50, deadline=None)
def test_any_text_is_conditions_or_refused(text: str) -> None:
    try:
        found = parse_where(text)
    except UsageError:
        return
    assert found
    assert all(one.name and one.sign for one in found)


def test_a_value_in_quotes_keeps_the_other_quotes() -> None:
    assert [one.value for one in parse_where("""opt='"adam"' and opt="'a" and opt='' """)] == ['"adam"', "'a", ""]


@given(st.text(max_size=20).filter(lambda text: "\0" not in text))
def test_any_text_can_be_written_in_quotes(text: str) -> None:
    (condition,) = parse_where(f"opt = {quote_name(text)}")
    assert (condition.value, condition.quoted) == (text, True)


TEXTS = ["2.1", "2.10", "01", "1", "001", "9007199254740993", "9007199254740992", "1e5", "100000", "auto"]
MIXED = [make_row(at, parameters={"v": text}) for at, text in enumerate(TEXTS)]
V = Columns(frozenset({"v"}), frozenset())


@pytest.mark.parametrize("text", TEXTS)
def test_each_text_finds_its_own_row(text: str) -> None:
    assert names(choose(MIXED, f"v={text}", V)) == names(choose(MIXED, f"v='{text}'", V)) == [str(TEXTS.index(text))]
    assert len(choose(MIXED, f"v!={text}", V)) == len(TEXTS) - 1


def test_numbers_are_compared_exactly_and_texts_not_at_all() -> None:
    assert names(choose(MIXED, "v>9007199254740992", V)) == ["5"]
    assert names(choose(MIXED, "v<=2.1", V)) == ["0", "1", "3"]


@pytest.mark.parametrize(
    ("condition", "notes"),
    [
        (
            "v<3",
            [
                "v mixes numbers and texts: it is a text in 3 of 10 experiments ('01', '001', 'auto'); "
                "< compares the numbers alone"
            ],
        ),
        (
            "v=1e5",
            [
                "v=1e5 is the text 1e5; the number is also written 100000 in 1 of 10 experiments: "
                "'v>=1e5 and v<=1e5' finds all"
            ],
        ),
        ("v='1e5'", []),
        ("v=auto and v!=2", []),
        ("state=FINISHED", []),
    ],
)
def test_what_a_condition_does_not_compare_is_said(condition: str, notes: list[str]) -> None:
    assert list(list_filter_notes(MIXED, parse_where(condition), V)) == notes


ENDED = [
    make_row(1, started="2026-11-01T09:00:00Z", ended="2026-11-01T10:00:30Z"),
    make_row(2, started="2026-11-02T00:00:00Z", ended="2026-11-28T11:59:00Z", reason="STOPPED_EARLY"),
    make_row(3, state="CREATED"),
    make_row(4, state="FAILED", started="2026-11-28T11:00:00Z"),
]


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("started>2026-11-01", ["2", "4"]),
        ("started>=2026-11-01", ["1", "2", "4"]),
        ("started=2026-11-01", ["1"]),
        ("started!=2026-11-01", ["2", "3", "4"]),
        ("ended<=2026-11-01T10:00", ["1"]),
        ("ended<2026-11-01T10:00", []),
        ("started>now-2h", ["4"]),
        ("started='2026-11-01 09:00'", ["1"]),
        ("state=STOPPED_EARLY", ["2"]),
        ("state=stopped_early", ["2"]),
        ("state=FINISHED", ["1"]),
        ("state!=FINISHED", ["2", "3", "4"]),
        ("state=CREATED", ["3"]),
        ("reason=STOPPED_EARLY", ["2"]),
    ],
)
def test_conditions_take_the_words_of_states_and_moments(condition: str, wanted: list[str]) -> None:
    assert names(choose(ENDED, condition)) == wanted


@pytest.mark.parametrize(
    ("condition", "message", "hint"),
    [
        (
            "state=STOPED",
            "--where state=STOPED: there is no such state",
            "there are BUILDING, CREATED, FAILED, FINISHED, KILLED",
        ),
        ("started>2h", "--where started>2h: '2h' is no moment", "write now-2h for that long ago"),
        ("ended<yesterday", "--where ended<yesterday: 'yesterday' is no moment", "write 2026-11-01"),
    ],
)
def test_words_that_no_state_and_no_moment_has_are_refused(condition: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        choose(ENDED, condition)
    assert message in refused.value.message
    assert (refused.value.hint or "").startswith(hint)


SAID = {
    1: Annotation("Warm Up", ("baseline", "lr=0.1"), starred=True),
    2: Annotation("other", ("Baseline",), archived=True),
    3: NO_ANNOTATION,
}


@pytest.mark.parametrize(
    ("text", "subs"),
    [
        ("tag:baseline", [1]),
        ("tag:Baseline", [2]),
        ("TAG: 'baseline' and tag:lr=0.1", [1]),
        ("tag:lr=0.1, star", [1]),
        ("tag:none", []),
        ("name:warm", [1]),
        ('name:"warm up" and star', [1]),
        ("name:o&&starred", []),
        ("star", [1]),
        ("archived", [2]),
        ("archived and name:OTHER", [2]),
        ("star=1", [3]),
        ("name='Warm Up'", [1]),
        ("name!=other", [1, 3]),
        ("marks=starred", [1]),
    ],
)
def test_rows_are_chosen_by_what_users_say(text: str, subs: list[int]) -> None:
    rows = [make_row(sub, annotation=said, parameters={"star": "1"} if sub == 3 else {}) for sub, said in SAID.items()]
    chosen = choose(rows, text, Columns(frozenset(["star"]), frozenset()))
    assert [row.number[1] for row in chosen] == subs


@pytest.mark.parametrize("text", ["tag:", "tag", "name:a b", "star archived", "star or archived", "tag:a&", "(star)"])
def test_a_condition_on_what_users_say_has_one_form(text: str) -> None:
    with pytest.raises(UsageError, match="--where"):
        choose([], text)
