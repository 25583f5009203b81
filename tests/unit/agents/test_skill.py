"""The skill for coding agents: each riseml.yml in it is valid, and the words that it explains are those of riseml."""

from __future__ import annotations

import re

import pytest

from riseml.agents.pages import find_page, list_pages
from riseml.base.errors import NotFound
from riseml.base.states import Reason
from riseml.cli.command_table import list_names
from riseml.spec.config.loader import check_config

SKILL = find_page("skill").read()
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", SKILL, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", EXAMPLES, ids=range(len(EXAMPLES)))
def test_each_example_is_valid(text: str) -> None:
    assert check_config(text).problems == ()


def test_there_are_examples_and_a_heading_for_programs() -> None:
    assert len(EXAMPLES) >= 6
    assert re.match(r"---\nname: riseml\ndescription: .{40,500}\n---\n", SKILL)


def test_its_words_are_those_of_riseml() -> None:
    reasons = {word for word in re.findall(r"\b[A-Z]+_[A-Z_]+\b", SKILL) if word in Reason.__members__}
    assert {"OUT_OF_MEMORY", "MAX_DURATION", "NO_ROOM"} <= reasons
    assert set(re.findall(r"`riseml ([a-z]+)", SKILL)) <= set(list_names())


def test_pages_are_there_and_unknown_ones_are_refused() -> None:
    names = [page.name for page in list_pages()]
    assert {"skill", "docs/riseml-yml", "docs/agents", "schemas/riseml.schema.json"} <= set(names)
    assert find_page("search.md") == find_page("riseml://docs/search")
    for wrong in ("", "../pyproject", "docs/../../LICENSE"):
        with pytest.raises(NotFound, match="riseml has no page"):
            find_page(wrong)
