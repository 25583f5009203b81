"""Any content of a file gives a spec, or problems with positions; never a traceback, never an ignored key."""

from __future__ import annotations

import copy
import functools
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from riseml.spec.config.loader import CheckedSpec, Overrides, check_config, load_config
from riseml.spec.schema.contract import CONFIG_CONTRACT
from riseml.spec.yaml.document import MAX_BYTES, MAX_NODES, MappingNode, Node, ScalarNode, parse_document
from riseml.spec.yaml.problems import KeyPath, Severity
from tests.unit.spec.examples import DISTRIBUTED, EXAMPLES

FILES = [*EXAMPLES.values(), DISTRIBUTED]
_YAML_WORDS = ("null", "yes", "012", "1e999", ".inf", "-1", "22:22", "<<:", "{{", "}}", "\\U00110000", "---")
_WORDS = (*_YAML_WORDS, "deploy:", "project:", "train:")
PIECES = st.sampled_from([*"\t\n :-#'\"{}[]&*!|>%@`,\\0_~?\ufeff\x85\u2028é", "\n  ", ": ", "16 Gb", *_WORDS])
NO_CLOCK = settings(deadline=None)  # a busy machine is not a failure


def _assert_consistent(content: str | bytes, checked: CheckedSpec) -> None:
    """Assert what holds for every result."""
    errors = [problem for problem in checked.problems if problem.severity is Severity.ERROR]
    assert (checked.spec is None) == bool(errors)
    lines = (content if isinstance(content, str) else content.decode("utf-8", "replace")).splitlines()
    for problem in checked.problems:
        assert problem.problem
        assert 1 <= problem.line <= len(lines) + 1
        assert problem.column >= 1
        assert str(problem)
    assert list(checked.problems) == sorted(checked.problems, key=lambda one: (one.line, one.column))


@NO_CLOCK
@given(st.text() | st.binary())
def test_any_text_is_a_spec_or_has_problems(content: str | bytes) -> None:
    _assert_consistent(content, check_config(content))


@NO_CLOCK
@given(st.lists(PIECES | st.sampled_from([*CONFIG_CONTRACT.places, *"ab"]), max_size=30).map("".join))
def test_any_text_of_yaml_pieces_is_a_spec_or_has_problems(content: str) -> None:
    _assert_consistent(content, check_config(content))


@st.composite
def _mutated(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(FILES))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 8)))
        text = text[:start] + draw(PIECES | st.just("") | st.just(text[start:end] * 2)) + text[end:]
    return text


@settings(deadline=None, max_examples=500)
@given(_mutated())
def test_mutated_valid_files_are_a_spec_or_have_problems(content: str) -> None:
    _assert_consistent(content, check_config(content))


@NO_CLOCK
@given(st.sampled_from(FILES), st.data())
def test_files_with_a_moved_or_missing_line_are_a_spec_or_have_problems(text: str, data: st.DataObject) -> None:
    lines = text.splitlines(keepends=True)
    index = data.draw(st.integers(0, len(lines) - 1))
    line = lines.pop(index)
    if data.draw(st.booleans()):
        lines.insert(data.draw(st.integers(0, len(lines))), " " * data.draw(st.integers(0, 3)) + line)
    content = "".join(lines)
    _assert_consistent(content, check_config(content))


def _value(node: Node) -> Any:
    """Return nodes as JSON, with every scalar as YAML would write it."""
    if isinstance(node, MappingNode):
        return {entry.key.text: _value(entry.value) for entry in node.entries}
    if isinstance(node, ScalarNode):
        return node.text if not node.plain else _Plain(node.text)
    return [_value(item) for item in node.items]


class _Plain(str):
    """A text without quotes."""

    __slots__ = ()


def _write(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {_write(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_write, value)) + "]"
    return value if isinstance(value, _Plain) and value.replace(".", "").isalnum() else json.dumps(value)


def _closed(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield every map of a file that accepts only known keys."""
    if isinstance(value, dict):
        if CONFIG_CONTRACT.at(path).get("additionalProperties") is False:
            yield path
        for key, one in value.items():
            yield from _closed(one, (*path, key))


@functools.cache
def _json(text: str) -> Any:
    """Return a file as JSON, which every caller shares."""
    root = parse_document(text, "example").root
    assert root is not None
    return _value(root)


PLACES = [(name, path) for name, text in EXAMPLES.items() for path in _closed(_json(text))]


@pytest.mark.parametrize(("name", "path"), PLACES, ids=[f"{name}-{'.'.join(map(str, path))}" for name, path in PLACES])
@given(
    key=st.text(min_size=1, max_size=12)
    | st.sampled_from([*CONFIG_CONTRACT.places, "gpu", "memory", "worker_count", "on ", "Run"])
)
@settings(deadline=None, max_examples=20)
def test_an_unknown_key_is_always_an_error(name: str, path: KeyPath, key: str) -> None:
    value = inner = copy.deepcopy(_json(EXAMPLES[name]))
    for part in path:
        inner = inner[part]
    if key in CONFIG_CONTRACT.at(path)["properties"]:
        return
    inner[key] = "1"
    text = _write(value)
    checked = check_config(text)
    _assert_consistent(text, checked)
    assert checked.spec is None


@st.composite
def _resources(draw: st.DrawFn) -> dict[str, Any]:
    found = {
        "cpus": st.sampled_from([0.2, 1, 2.5, 64]),
        "mem": st.sampled_from(["512M", "16GiB", 4, 16384, "2 GB"]),
        "gpus": st.integers(0, 16),
    }
    keys = draw(st.sets(st.sampled_from(sorted(found)), min_size=1))
    return {key: draw(found[key]) for key in sorted(keys)}


@st.composite
def _valid_file(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a valid file as a value."""
    names = draw(st.lists(st.from_regex(r"\A[a-z]{1,3}-[0-9]{1,3}\Z"), max_size=3, unique=True))
    words = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FFF), max_size=8)
    train: dict[str, Any] = {"framework": "tensorflow", "run": " ".join(["t", *(f"{{{{{name}}}}}" for name in names)])}
    if names:
        train["parameters"] = {
            name: draw(words | st.lists(words, min_size=1, max_size=3, unique=True)) for name in names
        }
    if draw(st.booleans()):
        train["resources"] = draw(_resources())
    if draw(st.booleans()):
        count = draw(st.integers(1, 9))
        worker: Any = {"count": count, "resources": draw(_resources())} if draw(st.booleans()) else count
        train["tensorflow"] = {"distributed": {"worker": worker, "ps": draw(st.integers(0, 9))}}
    if draw(st.booleans()):
        train["retry"] = draw(st.integers(0, 9) | st.fixed_dictionaries({"max": st.integers(0, 9)}))
    return {"project": draw(st.from_regex(r"\A[A-Za-z0-9_][A-Za-z0-9_-]{0,20}\Z")), "train": train}


@NO_CLOCK
@given(_valid_file())
def test_valid_files_are_read_as_meant(value: dict[str, Any]) -> None:
    spec = load_config(json.dumps(value))
    train = value["train"]
    assert spec.project == value["project"]
    wanted = {
        name: tuple(one) if isinstance(one, list) else (one,) for name, one in train.get("parameters", {}).items()
    }
    assert {parameter.name: parameter.values for parameter in spec.train.parameters} == wanted
    assert spec.train.resources.gpus == train.get("resources", {}).get("gpus", 0)
    if "tensorflow" in train:
        assert spec.train.tensorflow is not None
        cluster = spec.train.tensorflow.distributed
        worker = train["tensorflow"]["distributed"]["worker"]
        assert cluster is not None
        assert cluster.workers == (worker["count"] if isinstance(worker, dict) else worker)
        assert cluster.ps == train["tensorflow"]["distributed"]["ps"]
    retry = train.get("retry", 0)
    assert spec.train.policy.retry.max == (retry["max"] if isinstance(retry, dict) else retry)


@NO_CLOCK
@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), max_size=3), st.booleans())
def test_any_override_gives_a_spec_or_problems(pairs: list[tuple[str, str]], as_settings: bool) -> None:  # noqa: FBT001 - drawn by hypothesis
    given_pairs = tuple(pairs)
    overrides = Overrides(settings=given_pairs) if as_settings else Overrides(parameters=given_pairs)
    checked = check_config(EXAMPLES["the smallest"], overrides=overrides)
    errors = [problem for problem in checked.problems if problem.severity is Severity.ERROR]
    assert (checked.spec is None) == bool(errors)


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 40)
)
ATTACKS = {
    "billion laughs": LAUGHS,
    "ten megabytes": "a: b\n" * 2_000_000,
    "deep lists": "[" * 100_000,
    "deep maps": "{a: " * 100_000,
    "deep dashes": "- " * 100_000,
    "deep question marks": "? " * 100_000,
    "deep aliases": "a0: &a0 [[[[x]]]]\n" + "".join(f"a{n}: &a{n} [[[*a{n - 1}]]]\n" for n in range(1, 3000)),
    "many values": "- x\n" * (MAX_NODES + 1),
    "cycle": "project: &a {b: [*a]}\n",
    "long number": "project: x\ntrain: {image: a, run: b, concurrency: " + "9" * 100_000 + "}\n",
    "long exponent": "project: x\ntrain: {image: a, run: b, resources: {cpus: 1e99999999999}}\n",
    "long range": "train: {image: a, run: a, parameters: {p: {range: {min: 0, max: 1e300, step: 1e-300}}}}\n",
    "yaml version": "%YAML 1." + "9" * 5000 + "\n--- a\n",
    "escape": 'project: "\\UFFFFFFFF"\n',
    "surrogate itself": "project: \ud800\n",
    "surrogate": 'project: "\\ud800"\n',
    "many unclear numbers": "project: x\ntrain: {image: a, run: b, env: [" + "012: 3, " * 3000 + "]}\n",
}


@pytest.mark.parametrize("content", ATTACKS.values(), ids=ATTACKS)
def test_attacks_are_refused_with_little_memory(content: str) -> None:
    check_config("project: x\n")  # imports and the schema do not count
    tracemalloc.start()
    try:
        checked = check_config(content)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert checked.spec is None
    assert peak < 24 * 2**20
    _assert_consistent(content[:MAX_BYTES], checked)


def test_very_long_numbers_are_refused() -> None:
    for text in ("9" * 5000, "1e" + "9" * 30, "-" + "0" * 50, "." + "1" * 50):
        found = check_config(
            f"project: x\ntrain: {{image: a, run: b, priority: {text}, resources: {{cpus: {text}}}}}\n"
        )
        assert {problem.path for problem in found.problems} == {"train.priority", "train.resources.cpus"}


def test_long_commands_with_patterns_are_read_in_linear_time() -> None:
    """Each command has about 300 KB, so that a quadratic pattern would not end."""
    head = "project: x\ntrain:\n  image: a\n  run: >\n    a\n"
    for body in ("\n" * 200_000 + "      b\n", "    " + "{{ " * 100_000 + "\n", "    {{a}} \\\n" * 20_000):
        checked = check_config(head + body)
        _assert_consistent(head + body, checked)
