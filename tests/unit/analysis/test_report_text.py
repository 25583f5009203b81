"""Reports as text: what is Markdown, what is a block, what is wrong, and that nothing hostile passes."""

from __future__ import annotations

import pytest

from riseml.analysis.report_text import LONGEST_TEXT, MOST_BLOCKS, Block, check_report, find_title, read_blocks
from riseml.base.errors import UsageError

HOSTILE = """
<script>alert(1)</script> <img src=x onerror=alert(1)> [a](javascript:alert(1)) [b](vbscript:x) [c](data:text/html,x)
[d](//evil.example) ![e](https://evil.example/pixel.png) [f](/experiments/4) <javascript:alert(1)> [g](file:///etc)
[h](/\\\\evil.example) <https://good.example>

<div onclick="alert(1)">block</div>

[i]: javascript:alert(1)
[i] &lt;b&gt; `<b>`
"""


def write(kind: str, body: str) -> str:
    return f"```{kind}\n{body}\n```\n"


def test_blocks_and_text_come_in_their_order() -> None:
    text = "# A *title*\n\n" + write("chart", "runs: [4, 144.3, paul.7]\nmetric: loss\ntitle: L")
    text += write("table", "{runs: 4, columns: [lr, loss.min]}") + "end\n"
    text += write("media", "runs: 4\nname: s\nstep: 40")
    title, chart, table, end, media = read_blocks(text)
    assert [(piece.kind, piece.tag, piece.text) for piece in title.pieces][:4] == [
        ("open", "h1", ""),
        ("text", "", "A "),
        ("open", "em", ""),
        ("text", "", "title"),
    ]
    assert chart == Block("chart", 3, runs=("4", "144.3", "paul.7"), metric="loss", title="L")
    assert table == Block("table", 8, runs=("4",), columns=("lr", "loss.min"))
    assert (end.kind, [piece.text for piece in end.pieces]) == ("text", ["", "end", ""])
    assert media == Block("media", 12, runs=("4",), name="s", step=40)
    assert find_title(text) == "A title"
    check_report(text)


def test_a_block_of_another_language_is_code() -> None:
    (block,) = read_blocks(write("python", "runs: [4]") + "- a\n  ```chart\n  runs: 4\n  ```\n")
    assert [piece.text for piece in block.pieces if piece.kind == "fence"] == ["runs: [4]\n", "runs: 4\n"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (write("chart", "runs: [4]"), "line 1: chart: `metric` is missing"),
        (write("chart", "runs: []\nmetric: loss"), "line 1: chart: `runs` is missing"),
        (write("chart", "runs: [4]\nmetrics: loss"), "there is no key 'metrics'; the keys are runs, metric, title"),
        (write("chart", "runs: [loss]\nmetric: loss"), "'loss' is not an experiment ID"),
        (write("chart", "runs: [4.train]\nmetric: loss"), "4.train is a job; name its experiment"),
        (write("chart", "runs: [[4]]\nmetric: loss"), "`runs` is a text of at most 300 characters"),
        (write("chart", "just words"), "write lines such as `runs: [4, 5]`"),
        (write("chart", "runs: [4"), "line 1: chart: "),
        (write("chart", "[" * 5000), "line 1: chart: "),
        (write("chart", f"runs: {list(range(1, 53))}\nmetric: loss"), "`runs` has 52 values; at most 50 are shown"),
        ("a\n\n" + write("table", "runs: [4]\ncolumns: true"), "line 3: table: `columns` is a text"),
        (write("table", "runs: 4\n"), "table: `columns` is missing"),
        (write("table", "runs: 4\nmetric: loss"), "there is no key 'metric'"),
        (write("media", "runs: 4\nname: s\nstep: -1"), "`step` is a number of at most 15 digits"),
        (write("media", "runs: 4\nname: s\nstep: last"), "`step` is a number of at most 15 digits"),
        (write("media", "runs: 4"), "media: `name` is missing"),
        (write("chart", "x: 1") * 2, "1 more blocks are wrong"),
        (write("chart", f"runs: 0x{'f' * 5000}\nmetric: loss"), "`runs` is a text of at most 300 characters"),
        (write("chart", f"? 0x{'f' * 5000}\n: 4"), "there is no such key; the keys are"),
        (write("chart", f"runs: 4\nmetric: {'x' * 301}"), "`metric` has 301 characters; at most 300"),
        (write("chart", 'runs: 4\nmetric: "\\0"'), "`metric` contains an invalid character"),
        ("", "the report is empty"),
        (" \n", "the report is empty"),
        ("x" * (LONGEST_TEXT + 1), "the report has 50,001 characters"),
        (write("chart", "runs: 4\nmetric: loss") * (MOST_BLOCKS + 1), "more than 50 charts, tables and media"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_report(text)
    assert words in caught.value.message


def test_nothing_hostile_becomes_an_element_or_an_address() -> None:
    (block,) = read_blocks(HOSTILE)
    tags = {piece.tag for piece in block.pieces}
    assert tags == {"", "p", "a"}
    hrefs = {piece.href for piece in block.pieces if piece.kind == "open" and piece.tag == "a"}
    assert hrefs == {"", "https://evil.example/pixel.png", "/experiments/4", "https://good.example", "/%5Cevil.example"}
    words = "".join(piece.text for piece in block.pieces)
    for kept in ("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", '<div onclick="alert(1)">', "<b>"):
        assert kept in words, "HTML is text"


@pytest.mark.parametrize("piece", ["> ", "- ", "**", "[", "![", "`", "|a", "\\", "&#x", "<", "[a]: ", "# ", "\t", "\0"])
def test_no_text_breaks_the_reader(piece: str) -> None:
    text = piece * 400
    opened = closed = 0
    for block in read_blocks(text):
        for part in block.pieces:
            opened, closed = opened + (part.kind == "open"), closed + (part.kind == "close")
    assert opened == closed
