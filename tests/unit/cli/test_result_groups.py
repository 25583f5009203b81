"""`results --group` and `results --compare`, with the fake server."""

from __future__ import annotations

import csv
import json

import pytest

from tests.unit.cli.conftest import Riseml
from tests.unit.cli.fake_server import FakeServer
from tests.unit.cli.group_rows import BROKEN, GROUPS, LUCKY, STEADY, make_group

ADDRESS = "GET /results/groups"


def test_points_are_rows_with_their_statistics_and_the_lucky_seed_is_named(
    riseml: Riseml, fake_server: FakeServer
) -> None:
    fake_server.answers[ADDRESS] = (200, GROUPS)
    result = riseml("results", "144", "--group")
    assert fake_server.asked[-1] == "GET /results/groups?sort=&of=144"
    assert result.out.splitlines() == [
        "   RANK  RUNS               lr  N  MEAN accuracy         SD    95% INTERVAL  LEFT OUT",
        "*     1  144.1 to 144.5    0.1  5          0.918  0.0083666  0.912 to 0.924  -",
        "      2  144.6 to 144.10  0.01  5          0.764    0.12661  0.702 to 0.878  -",
        "      -  144.11,144.12      =1  1           0.95          -               -  1 without a value",
        "",
        "* 144.1 to 144.5 (lr=0.1, epochs=20): the best mean over seeds, where the largest accuracy is best",
        "The luckiest single run: 144.6 0.99, seed 1",
        "SD: with n - 1. Interval: of the mean, by bootstrap; too narrow where n is small (`riseml docs results`)",
        "All have epochs=20",
    ]
    assert json.loads(riseml("results", "144", "--group", "--json").out) == GROUPS


def test_csv_has_all_digits_and_no_formula(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers[ADDRESS] = (200, GROUPS)
    first, _, last = csv.DictReader(riseml("results", "144", "--group", "--csv").out.splitlines())
    assert (float(first["mean"]), float(first["deviation"])) == (STEADY["mean"], STEADY["deviation"])
    assert (first["runs"], first["n"]) == ("144.1 144.2 144.3 144.4 144.5", "5")
    assert (last["rank"], last["parameters.lr"], last["deviation"], last["failed"]) == ("", "'=1", "", "1")


def test_a_metric_may_be_named_and_rows_limited(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers[ADDRESS] = (200, GROUPS)
    out = riseml("results", "144", "--group", "--columns", "loss.last", "-n", "1").out
    assert fake_server.asked[-1] == "GET /results/groups?sort=&of=144&column=loss.last"
    assert "... and 2 more; `-n 0` shows all, and so do --csv and --json" in out.splitlines()
    assert "LEFT OUT" not in out


def test_two_points_are_compared_in_words_that_do_not_overstate(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers[ADDRESS] = (200, GROUPS)
    result = riseml("results", "--compare", "144.1", "144.7")
    assert fake_server.asked[-1] == "GET /results/groups?sort=&of=144", "all runs of their points"
    assert result.out.splitlines()[-3:] == [
        "No difference shown (p = 0.058, n = 5 and 5)",
        "144.6 less 144.1: -0.154, 95% interval -0.316511 to 0.008511, by a paired t-test: both ran with the same "
        "seeds",
        "That is not a proof that they are equal",
    ]
    shown = json.loads(riseml("results", "--compare", "144.1", "144.7", "--json").out)
    assert (shown["test"], len(shown["groups"])) == ("paired", 2)
    assert shown["verdict"].startswith("no difference shown (p = 0.0")


def test_a_difference_that_is_shown_names_the_larger_mean(riseml: Riseml, fake_server: FakeServer) -> None:
    other = make_group(6, "0.01", 0.81, 0.82, 0.83, 0.82, 0.80, rank=2)
    fake_server.answers[ADDRESS] = (200, {**GROUPS, "groups": [STEADY, other]})
    result = riseml("results", "--compare", "144.1", "144.7")
    verdict = "A difference is shown (p < 0.001, n = 5 and 5): 144.1 has the larger mean accuracy"
    assert verdict in result.out.splitlines()


def test_digits_count_in_the_table_of_groups(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers[ADDRESS] = (200, GROUPS)
    usual = riseml("results", "144", "--group").out.splitlines()[1].split()
    short = riseml("results", "144", "--group", "--digits", "2").out.splitlines()[1].split()
    assert len(usual) == len(short)
    assert [len(cell) for cell in short if cell.startswith("0.9")] == [4] * 3
    refused = riseml("results", "--compare", "144.1", "144.7", "--digits", "2")
    assert (refused.code, "--compare and --digits exclude each other" in refused.err) == (2, True)


def test_groups_for_a_paper(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers[ADDRESS] = (200, GROUPS)
    latex = riseml("results", "144", "--group", "--format", "latex", "--digits", "3").out.splitlines()
    assert latex[2] == r"lr & n & mean accuracy & SD & 95\% low & 95\% high \\"
    assert latex[4].startswith(r"0.1 & 5 & \textbf{0.9")
    markdown = riseml("results", "144", "--group", "--format", "md").out.splitlines()
    assert markdown[0] == "| lr | n | mean accuracy | SD | 95% low | 95% high |"
    assert markdown[2].startswith("| 0.1 | 5 | **0.9")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--compare", "144"], "--compare takes two IDs, not 1"),
        (["--compare"], "--compare takes two IDs, not 0"),
        (["--compare", "144.1", "144.1"], "--compare would compare 144.1 with itself"),
        (["--compare", "144.1", "144.2"], "144.1 and 144.2 are runs of the same point"),
        (["--compare", "144", "144.1"], "144 has 3 points, and two are compared"),
        (["--compare", "144.99", "144.1"], "144.99 is none of these experiments"),
        (["--compare", "144.1", "144.7", "--csv"], "--compare and --format csv exclude each other"),
        (["--compare", "144.1", "144.7", "--group"], "--compare and --group exclude each other"),
        (["144", "--group", "--scaling"], "--group and --scaling exclude each other"),
        (["144", "--group", "--columns", "a,b"], "with --group, --columns names the one metric that is averaged"),
        (["144", "--group", "--csv", "--json"], "--csv and --json exclude each other"),
    ],
)
def test_what_makes_no_sense_is_refused(
    riseml: Riseml, fake_server: FakeServer, arguments: list[str], message: str
) -> None:
    fake_server.answers[ADDRESS] = (200, GROUPS)
    refused = riseml("results", *arguments)
    assert refused.code == 2
    assert message in refused.err


def test_conditions_that_nothing_meets_are_said(riseml: Riseml, fake_server: FakeServer) -> None:
    fake_server.answers[ADDRESS] = (200, {**GROUPS, "groups": [], "best_run": None})
    assert (
        riseml("results", "144", "--group", "--where", "lr<0").out == "None of 12 experiments meets the conditions.\n"
    )


def test_groups_without_an_objective_have_no_ranks(riseml: Riseml, fake_server: FakeServer) -> None:
    groups = [{**group, "rank": None} for group in (LUCKY, BROKEN)]
    fake_server.answers[ADDRESS] = (200, {**GROUPS, "objective": None, "best_run": None, "groups": groups})
    out = riseml("results", "144", "--group").out
    assert "RANK" not in out
    assert "luckiest" not in out
