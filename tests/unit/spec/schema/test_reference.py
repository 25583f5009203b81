"""The sections of a reference page, one for each key of a schema."""

from __future__ import annotations

from riseml.spec.schema.contract import CONFIG_CONTRACT, POOL_CONTRACT
from riseml.spec.schema.reference import list_key_sections


def test_a_section_has_the_form_the_default_and_an_example_of_its_key() -> None:
    page = "\n".join(list_key_sections(CONFIG_CONTRACT))
    (section,) = (text for text in page.split("\n#") if text.startswith("#### `train.resources.mem`"))
    assert '*memory; or a parameter, `"{{name}}"`; default `1GiB`*' in section
    assert "```yaml\nmem: " in section


def test_sections_say_which_keys_are_required_and_in_which_range_numbers_are() -> None:
    page = "\n".join(list_key_sections(CONFIG_CONTRACT))
    assert "### `project`\n\n**" in page
    assert "*string; required*" in page
    assert "number, 1 to " in page


def test_items_of_a_list_have_brackets() -> None:
    headings = [line for text in list_key_sections(POOL_CONTRACT) for line in text.split("\n") if line.startswith("#")]
    assert "#### `hosts[].name`" in headings
    assert "## Keys" in headings
