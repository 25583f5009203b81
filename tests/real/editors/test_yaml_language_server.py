"""What an editor with yaml-language-server offers and explains in the files of riseml, from the schemas alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.language_server import Editor, open_editor

ROOT = Path(__file__).parents[3]
TRAIN = "project: a\ntrain:\n"


@pytest.fixture(scope="module")
def editor() -> Iterator[Editor]:
    """One language server for all positions."""
    with open_editor([ROOT / "scripts/web/yaml-language-server", "--stdio"]) as opened:
        yield opened


def _show(editor: Editor, folder: Path, text: str, schema: str = "riseml") -> None:
    head = f"# yaml-language-server: $schema={(ROOT / 'schemas' / f'{schema}.schema.json').as_uri()}\n"
    editor.open_file(folder / f"{schema}.yml", head + text)


@pytest.mark.parametrize(
    ("schema", "text", "offered"),
    [
        ("riseml", "¦", {"project", "train"}),
        ("riseml", f"{TRAIN}  ¦", {"framework", "image", "run", "resources", "parameters", "search", "roles"}),
        ("riseml", f"{TRAIN}  resources:\n    ¦", {"cpus", "mem", "gpus", "gpu", "labels"}),
        ("riseml", f"{TRAIN}  framework: ¦", {"tensorflow", "pytorch", "jax"}),
        ("riseml", f"{TRAIN}  search:\n    method: ¦", {"grid", "random", "tpe", "cma-es", "pbt"}),
        ("riseml", f"{TRAIN}  roles:\n    actor:\n      ends: ¦", {"decides", "helps", "serves"}),
        ("pool", "hosts:\n  - ¦", {"name", "url", "labels"}),
        ("server", "¦", {"listen"}),
    ],
)
def test_an_editor_offers_keys_and_values(
    editor: Editor, tmp_path: Path, schema: str, text: str, offered: set[str]
) -> None:
    _show(editor, tmp_path, text, schema)
    items = {item["label"]: item for item in editor.list_completions()}
    assert offered <= set(items), sorted(items)
    assert all(items[name].get("documentation") for name in offered)


@pytest.mark.parametrize(
    ("schema", "text", "said"),
    [
        ("riseml", "pro¦ject: a\n", ("Name of the project", "ai-toaster")),
        ("riseml", f"{TRAIN}  resources:\n    m¦em: 4GiB\n", ("Memory", "Without a unit it is MiB from 64 up", "4GiB")),
        ("riseml", f"{TRAIN}  search:\n    tri¦als: 5\n", ("Number of trials", "How many points are tried", "40")),
        (
            "riseml",
            f"{TRAIN}  tensorflow:\n    distributed:\n      wor¦ker: 3\n",
            ("Workers", "The first one is the master", "count: 3"),
        ),
        ("riseml", f"{TRAIN}  da¦ta: [s3://a/b]\n", ("What the server fetches", "riseml docs stores", "s3://")),
        ("pool", "net¦work: overlay\n", ("overlay",)),
    ],
)
def test_an_editor_explains_a_key_with_an_example(
    editor: Editor, tmp_path: Path, schema: str, text: str, said: tuple[str, ...]
) -> None:
    _show(editor, tmp_path, text, schema)
    shown = editor.read_hover()
    assert [part for part in said if part not in shown] == [], shown
    assert "Example" in shown
