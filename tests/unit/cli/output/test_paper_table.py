"""Tables for LaTeX and Markdown: every sign is printed as it is written, and columns have the same digits."""

from __future__ import annotations

import math

import pytest

from riseml.cli.output.paper_table import (
    PaperTable,
    escape_latex,
    escape_markdown,
    format_digits,
    list_latex,
    list_markdown,
)

TABLE = PaperTable(
    ["id", "val_loss", "best|last", "n"],
    [["1.10", -0.5, 0.98123, 20.0], ["a&b_c", 1.25e-5, 1.0, 3.0], ["100%", None, math.nan, 7.0]],
    frozenset({(0, 2), (1, 1)}),
    digits=3,
)


def test_latex_has_the_rules_of_booktabs_and_bold_numbers() -> None:
    assert list_latex(TABLE) == [
        r"\begin{tabular}{lrrr}",
        r"\toprule",
        r"id & val\_loss & best\textbar{}last & n \\",
        r"\midrule",
        r"1.10 & $-0.500$ & \textbf{0.981} & 20 \\",
        r"a\&b\_c & $\mathbf{1.25\times 10^{-5}}$ & 1.00 & 3 \\",
        r"100\% & - & nan & 7 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_markdown_has_escaped_pipes_and_bold_numbers() -> None:
    assert list_markdown(TABLE) == [
        r"| id | val_loss | best\|last | n |",
        "| --- | ---: | ---: | ---: |",
        "| 1.10 | -0.500 | **0.981** | 20 |",
        "| a&b_c | **1.25e-05** | 1.00 | 3 |",
        "| 100% | - | nan | 7 |",
    ]


@pytest.mark.parametrize(
    ("text", "latex", "markdown"),
    [
        (r"\x{1}", r"\textbackslash{}x\{1\}", r"\\x{1}"),
        ("#1 $5 ~ ^", r"\#1 \$5 \textasciitilde{} \textasciicircum{}", r"#1 $5 \~ ^"),
        ("<a> *b* `c", r"\textless{}a\textgreater{} {*}b{*} \textasciigrave{}c", r"\<a\> \*b\* \`c"),
        ("_x_ a_b [l]", r"\_x\_ a\_b {[}l]", r"\_x\_ a_b \[l\]"),
        ("two\nlines\t|", r"two lines \textbar{}", r"two lines \|"),
        ("--lr -1 'x'", r"-{}-lr -1 \textquotesingle{}x\textquotesingle{}", "--lr -1 'x'"),
        ("2.10", "2.10", "2.10"),
        ("損失", "損失", "損失"),
    ],
)
def test_signs_are_printed_as_they_are_written(text: str, latex: str, markdown: str) -> None:
    assert (escape_latex(text), escape_markdown(text)) == (latex, markdown)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.98, 3, "0.980"),
        (1.0, 3, "1.00"),
        (0.0, 2, "0.0"),
        (1448.4, 3, "1448"),
        (99.96, 3, "100"),
        (-0.05, 1, "-0.05"),
        (1e-5, 2, "1.0e-05"),
        (math.inf, 3, "inf"),
    ],
)
def test_numbers_have_the_digits_that_are_asked_for(value: float, digits: int, text: str) -> None:
    assert format_digits(value, digits) == text


def test_without_digits_a_table_has_six_at_most() -> None:
    rows = list_markdown(PaperTable(["a"], [[0.98123456], [0.5]]))
    assert rows[2:] == ["| 0.981235 |", "| 0.5 |"]
