"""A host is added to the text of a pool.yml, or removed, and every other character stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.spec.pool.file_edit import UneditableFile, add_host, remove_host, show_entry
from riseml.spec.pool.loader import load_pool
from tests.unit.spec.examples import FULL_POOL

EXAMPLE = (Path(__file__).parents[4] / "pool.yml.example").read_text()
NEW = {"name": "gpu9", "url": "ssh://me@gpu9:22", "labels": {"gpu": "a100", "driver": "1.10", "on": "true"}}
LINES = '  - name: gpu9\n    url: ssh://me@gpu9:22\n    labels: {gpu: a100, driver: "1.10", "on": "true"}\n'
TEXTS = {
    "the example": EXAMPLE,
    "every key": FULL_POOL,
    "json": '{"hosts": [{"name": "a", "url": "unix:///x"}, {"name": "b", "url": "unix:///y"}], "network": "host"}',
    "no last newline": "hosts:\n- name: a\n  url: unix:///x\n- name: b\n  url: unix:///y",
    "carriage returns": "hosts:\r\n- name: a\r\n  url: unix:///x\r\n- name: b\r\n  url: unix:///y\r\n",
    "dashes alone": "hosts:\n  -\n    name: a\n    url: unix:///x\n  -\n    name: b\n    url: unix:///y\n",
    "brackets in lines": "hosts: [\n  {name: a, url: 'unix:///x'},\n  {name: b, url: 'unix:///y'},  # last\n]\n",
    "folded text": "hosts:\n- name: a\n  url: unix:///x\n- name: b\n  url: >-\n    unix:///y\n\nnetwork: host\n",
    "an anchor": "hosts:\n- {name: a, url: 'unix:///x', labels: &l {rack: '1'}}\n- {name: b, url: 'unix:///y'}\n",
    "a mark at the beginning": "\ufeffhosts:\n- name: a\n  url: unix:///x\n- name: b\n  url: unix:///y\n",
}


def _assert_inserted(short: str, long: str) -> None:
    """Assert that the long text is the short one with one piece more."""
    pairs = zip(short, long, strict=False)
    at = next((place for place, (one, other) in enumerate(pairs) if one != other), len(short))
    assert long.startswith(short[:at])
    assert long.endswith(short[at:])


@pytest.mark.parametrize("name", TEXTS)
def test_a_host_is_inserted_and_nothing_else_changes(name: str) -> None:
    before = TEXTS[name]
    after = add_host(before, NEW)
    _assert_inserted(before, after)
    count = before.count("url:") + before.count('"url"')
    assert remove_host(after, count).rstrip() == before.rstrip()


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("index", [0, 1])
def test_a_host_is_cut_out_and_nothing_else_changes(name: str, index: int) -> None:
    before = TEXTS[name]
    after = remove_host(before, index)
    _assert_inserted(after, before)


def test_a_new_host_stands_as_the_others_do() -> None:
    after = add_host(EXAMPLE, NEW)
    assert f"is root on that host\n\n{LINES}\nstorage:" in after
    assert add_host("", NEW).endswith(f"hosts:\n{LINES}")
    assert show_entry(NEW) == LINES


def test_comments_below_the_last_host_stay_with_it() -> None:
    before = "hosts:\n  - name: a\n    url: unix:///x\n    # gpus: [0]\n# the end\n"
    assert "    # gpus: [0]\n  - name: gpu9\n" in add_host(before, NEW)
    assert add_host(before, NEW).endswith("# the end\n")


def test_a_comment_above_a_host_stays() -> None:
    before = "hosts:\n- {name: a, url: 'unix:///x'}\n# rack 2\n- {name: b, url: 'unix:///y'}\n"
    assert remove_host(before, 1) == "hosts:\n- {name: a, url: 'unix:///x'}\n# rack 2\n"


@pytest.mark.parametrize(
    "text",
    [
        "network: host\n",
        "hosts: {}\n",
        "# nothing but a comment\n",
        "hosts: &all [{name: a, url: 'unix:///x'}]\nstorage: *all\n",
        "hosts:\n- name: 'a\n",
    ],
)
def test_a_text_that_cannot_be_changed_safely_is_refused(text: str) -> None:
    with pytest.raises(UneditableFile):
        add_host(text, NEW)


def test_a_host_whose_anchor_others_use_is_not_cut_out() -> None:
    text = "hosts:\n- {name: a, url: 'unix:///x', labels: &l {k: v}}\n- {name: b, url: 'unix:///y', labels: *l}\n"
    assert remove_host(text, 1).count("name:") == 1
    with pytest.raises(UneditableFile):
        remove_host(text, 0)


COMMENTS = st.sampled_from(["", "  # why", "\n", "\n\n", "\n      # gpus: [0]", "\n  # about the next", "\n# all"])
NAMES = st.lists(st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True), min_size=1, max_size=5, unique=True)
LABELS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co", "Zl", "Zp"], exclude_characters="\ufeff"),
    min_size=1,
    max_size=12,
)


@settings(deadline=None, max_examples=60)
@given(st.data(), NAMES)
def test_any_layout_keeps_its_other_lines(data: st.DataObject, names: list[str]) -> None:
    """Add a host to a file of random indents, comments and styles, then remove it: the file is as before."""
    *kept, new = names
    if not kept:
        return
    indent = " " * data.draw(st.integers(0, 4))
    gap = " " * data.draw(st.integers(1, 3))
    text = "hosts:" + data.draw(COMMENTS.filter(lambda one: "[" not in one)) + "\n"
    for name in kept:
        url = f"unix:///{name}"
        flow = data.draw(st.booleans())
        block = f"{{name: '{name}', url: '{url}'}}" if flow else f"name: '{name}'\n{indent} {gap}url: '{url}'"
        text += f"{indent}-{gap}{block}{data.draw(COMMENTS)}\n"
    text += data.draw(st.sampled_from(["", "network: host\n", "\n# the end\n"]))
    entry = {"name": new, "url": f"unix:///{new}", "address": "192.0.2.1", "labels": {"k": data.draw(LABELS)}}
    added = add_host(text, entry)
    _assert_inserted(text, added)
    assert remove_host(added, len(kept)).split() == text.split()
    _assert_inserted(remove_host(added, data.draw(st.integers(0, len(kept) - 1))), added)


def test_what_is_added_is_read_as_it_was_meant(tmp_path: Path) -> None:
    entry = {**NEW, "gpus": ["0", "GPU-8f2c"], "cpus": 30, "mem": "120GiB", "address": "gpu9.lab"}
    spec = load_pool(add_host("", entry), tmp_path / "pool.yml")
    (host,) = spec.hosts
    assert (host.gpus, host.cpus, host.mem, host.address) == (("0", "GPU-8f2c"), 30.0, 120 * 1024, "gpu9.lab")
    assert host.labels == (("gpu", "a100"), ("driver", "1.10"), ("on", "true"))
