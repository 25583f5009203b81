"""pool.yml: its content, and that schema, dataclasses, reference and example agree with each other."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from riseml.base.names import HostName
from riseml.base.states import Network
from riseml.spec.pool import types
from riseml.spec.pool.loader import check_pool, load_pool
from riseml.spec.pool.reference import render_pool_reference
from riseml.spec.scalars.engine_url import EngineUrl, Scheme, parse_engine_url
from riseml.spec.scalars.texts import BadText
from riseml.spec.schema.contract import POOL_CONTRACT
from riseml.spec.schema.sentences import format_flow
from riseml.spec.yaml.document import MappingNode, Node, parse_document
from riseml.spec.yaml.problems import KeyPath, SpecError

ROOT = Path(__file__).parents[3]
KEYS = dict(POOL_CONTRACT.walk())
IDS = [".".join(map(str, path)) for path in KEYS]
FULL = """\
hosts:
  - name: gpu1
    url: ssh://me@gpu1:2222/run/other.sock
    gpus: [0, GPU-8f2c]
    labels: {gpu: a100, fast: true, driver: 1.10}
    cpus: 30.5
    mem: 120GiB
    identity: keys/id
    known_hosts: ../known
  - {name: gpu2, url: "TCP://GPU2.example.org:2376/", tls: {ca: ca.pem, cert: ca.pem, key: keys/id}, mem: 16384}
  - {name: lab, url: "tcp://[2001:db8::1]:2375", insecure: true, address: lab.example.org, gpus: all}
storage:
  output: /mnt/out
  data: {volume: data, driver: nfs, options: {o: "addr=192.0.2.10,ro", hard: yes}}
disk: {clean_above: 92}
network: host
encrypted: no
registry: registry.example.org:5000/riseml
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a pool.yml, in a folder with the files that the texts here name."""
    for name in ("keys/id", "keys/gpu1", "certs/ca.pem", "certs/cert.pem", "certs/key.pem", "ca.pem"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.touch(0o600)
    return tmp_path / "pool.yml"


def test_every_key_is_read(path: Path) -> None:
    folder = path.parent
    assert load_pool(FULL, path) == types.PoolSpec(
        hosts=(
            types.HostSpec(
                name=HostName("gpu1"),
                url="ssh://me@gpu1:2222/run/other.sock",
                address="gpu1",
                gpus=("0", "GPU-8f2c"),
                labels=(("gpu", "a100"), ("fast", "true"), ("driver", "1.10")),
                cpus=30.5,
                mem=120 * 1024,
                identity=str(folder / "keys" / "id"),
                known_hosts=str(folder.parent / "known"),
            ),
            types.HostSpec(
                name=HostName("gpu2"),
                url="tcp://gpu2.example.org:2376",
                address="gpu2.example.org",
                mem=16384,
                tls=types.Tls(str(folder / "ca.pem"), str(folder / "ca.pem"), str(folder / "keys" / "id")),
            ),
            types.HostSpec(HostName("lab"), "tcp://[2001:db8::1]:2375", "lab.example.org", insecure=True),
        ),
        output="/mnt/out",
        data=types.Volume("data", "nfs", (("o", "addr=192.0.2.10,ro"), ("hard", "yes"))),
        disk=types.DiskSpec(92),
        network=Network.HOST,
        encrypted=False,
        registry="registry.example.org:5000/riseml",
    )


@pytest.mark.parametrize(("value", "mark"), [("false", None), ("10", 10), ("99", 99)])
def test_the_server_makes_room_on_disks_as_the_file_says(value: str, mark: int | None) -> None:
    hosts = "hosts: [{name: here, url: unix:///var/run/docker.sock}]\n"
    assert load_pool(f"{hosts}disk: {{clean_above: {value}}}\n", "pool.yml").disk == types.DiskSpec(mark)
    assert load_pool(hosts, "pool.yml").disk is None, "RISEML_CLEAN_ABOVE says it"
    for wrong in ("true", "100", "9", "85.5", "85%"):
        assert check_pool(f"{hosts}disk: {{clean_above: {wrong}}}\n", "pool.yml").spec is None


def test_one_local_host_needs_no_address() -> None:
    spec = load_pool("hosts: [{name: here, url: unix:///var/run/docker.sock}]\n", "pool.yml")
    assert spec == types.PoolSpec((types.HostSpec(HostName("here"), "unix:///var/run/docker.sock"),))


def test_files_are_found_from_any_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    text = "hosts: [{name: a, url: ssh://a, identity: keys/id}]\n"
    assert load_pool(text, "pool.yml").hosts[0].identity == str(path.parent / "keys" / "id")


def test_a_thousand_hosts_are_read() -> None:
    hosts = "".join(
        f"- {{name: h{number}, url: ssh://riseml@h{number}, gpus: [0, 1, 2, 3], labels: {{gpu: a100}}}}\n"
        for number in range(1000)
    )
    assert len(load_pool(f"hosts:\n{hosts}", "pool.yml").hosts) == 1000


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("unix:///run/docker.sock", EngineUrl(Scheme.UNIX, socket="/run/docker.sock")),
        ("ssh://gpu1", EngineUrl(Scheme.SSH, "gpu1", socket="/var/run/docker.sock")),
        ("SSH://me@GPU-Box:22", EngineUrl(Scheme.SSH, "GPU-Box", 22, "me", "/var/run/docker.sock")),
        ("tcp://GPU-Box:2376", EngineUrl(Scheme.TCP, "gpu-box", 2376)),
        ("ssh://me@gpu1/", EngineUrl(Scheme.SSH, "gpu1", None, "me", "/var/run/docker.sock")),
        ("ssh://me@gpu1:22/a.sock", EngineUrl(Scheme.SSH, "gpu1", 22, "me", "/a.sock")),
        ("tcp://[::1]:2376", EngineUrl(Scheme.TCP, "::1", 2376)),
    ],
)
def test_urls_are_read_and_written(text: str, url: EngineUrl) -> None:
    assert parse_engine_url(text) == url
    assert parse_engine_url(str(url)) == url


@given(st.text(alphabet="tcpsshunix:/@[]-.a1\\%?# \n", max_size=30).map(lambda text: text) | st.text(max_size=30))
@settings(deadline=None, max_examples=200)
def test_no_url_becomes_an_option_or_a_second_word(text: str) -> None:
    """The parts of a URL become arguments of ssh."""
    for scheme in ("", "ssh://", "tcp://", "unix://"):
        try:
            url = parse_engine_url(scheme + text)
        except BadText:
            continue
        assert parse_engine_url(str(url)) == url
        assert not {" ", "\n", "\t"} & set(str(url))
        assert not url.host.startswith("-")
        assert not (url.user or "").startswith("-")


PIECES = st.sampled_from(
    [
        "hosts",
        "name",
        "url",
        "tls",
        "storage",
        "output",
        ": ",
        ":",
        "\n",
        "  ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "ssh://a",
        "0",
    ]
)


@given(st.lists(PIECES | st.text(max_size=3), max_size=40).map("".join))
@settings(deadline=None, max_examples=300)
def test_any_text_is_a_pool_or_has_problems(text: str) -> None:
    try:
        assert load_pool(text, "pool.yml").hosts
    except SpecError as error:
        assert all(problem.file == "pool.yml" and problem.problem for problem in error.problems)


@given(
    st.sampled_from(sorted(KEYS, key=str)), st.sampled_from(["~", "[]", "{}", "''", "x", "-1", "[~]", "{a: ~}", "yes"])
)
@settings(deadline=None, max_examples=200)
def test_any_value_anywhere_is_read_or_refused(keys: KeyPath, value: str) -> None:
    text = value
    for part in reversed(keys):
        text = f"[{text}]" if isinstance(part, int) else f"{{{part}: {text}}}"
    checked = check_pool(text, "pool.yml")
    assert (checked.spec is None) == any(problem.severity.value == "error" for problem in checked.problems)


def test_the_schema_is_valid_json_schema() -> None:
    Draft202012Validator.check_schema(POOL_CONTRACT.schema)
    assert POOL_CONTRACT.schema["$schema"].endswith("2020-12/schema")


@pytest.mark.parametrize("keys", KEYS, ids=IDS)
def test_every_key_has_title_description_and_examples(keys: KeyPath) -> None:
    schema = KEYS[keys]
    assert {"title", "description", "examples", "type"} <= set(schema)
    assert schema["description"].endswith(".")
    if schema.get("format") == "gpus":
        return  # an index is a number in JSON, and a string in riseml
    validator = Draft202012Validator({**schema, "$defs": POOL_CONTRACT.schema["$defs"]})
    for example in [*schema["examples"], *([schema["default"]] if "default" in schema else [])]:
        assert not list(_errors(validator, example)), example


def _errors(validator: Draft202012Validator, example: Any) -> Any:
    """Return the errors without those of GPU ids."""
    return (error for error in validator.iter_errors(example) if "gpus" not in error.absolute_path)


def test_no_map_accepts_unknown_keys() -> None:
    for keys, schema in [((), POOL_CONTRACT.schema), (("hosts", 0), POOL_CONTRACT.at(("hosts", 0))), *KEYS.items()]:
        if "properties" in schema:
            assert schema["additionalProperties"] is False, keys


@pytest.mark.parametrize(
    ("keys", "cls", "other"),
    [
        ((), types.PoolSpec, {"storage": {"output", "data"}}),
        (("hosts", 0), types.HostSpec, {}),
        (("hosts", 0, "tls"), types.Tls, {}),
        (("storage", "output"), types.Volume, {"volume": {"name"}}),
        (("storage", "data"), types.Volume, {"volume": {"name"}}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_sections_have_the_fields_of_their_dataclass(keys: KeyPath, cls: Any, other: dict[str, set[str]]) -> None:
    known = set(POOL_CONTRACT.at(keys)["properties"])
    assert known.difference(other).union(*other.values()) == {field.name for field in fields(cls)}


def test_choices_and_defaults_are_those_of_the_dataclasses() -> None:
    default = types.PoolSpec(())
    assert set(POOL_CONTRACT.at(("network",))["enum"]) == {member.value for member in Network} - {Network.BRIDGE.value}
    assert POOL_CONTRACT.at(("network",))["default"] == default.network.value
    assert POOL_CONTRACT.at(("storage", "output", "driver"))["default"] == types.Volume("").driver
    assert POOL_CONTRACT.at(("hosts", 0, "insecure"))["default"] is types.HostSpec(HostName(""), "").insecure


@pytest.mark.parametrize("text", ["unix:///a", "ssh://a", "ssh://u@a:22/s", "tcp://a:1", "tcp://a", "a", "http://a"])
def test_the_pattern_accepts_the_urls_that_the_reader_accepts(text: str) -> None:
    matches = re.search(POOL_CONTRACT.at(("hosts", 0, "url"))["pattern"], text) is not None
    try:
        parse_engine_url(text)
    except BadText:
        assert not matches
    else:
        assert matches


def test_the_reference_is_generated() -> None:
    page = (ROOT / "docs" / "pool-yml.md").read_text(encoding="utf-8")
    assert page == render_pool_reference(), "run `python -m riseml.spec.pool.reference > docs/pool-yml.md`"
    assert all(f"`{'.'.join(map(str, keys)).replace('.0', '[]')}`" in page for keys in KEYS)


@pytest.mark.parametrize("keys", KEYS, ids=IDS)
def test_examples_of_the_reference_are_yaml_of_the_same_value(keys: KeyPath) -> None:
    for example in KEYS[keys]["examples"]:
        root = parse_document(f"{keys[-1]}: {format_flow(example)}\n", "example").root
        assert isinstance(root, MappingNode)
        assert _plain(root.entries[0].value) == _texts(example)


def test_the_example_file_is_valid_and_shows_every_key(path: Path) -> None:
    text = (ROOT / "pool.yml.example").read_text(encoding="utf-8")
    assert check_pool(text, path).problems == ()
    commented = set(re.findall(r"(?m)^[ #-]*([a-z_]+):[^#\n]*#", text))
    assert {str(keys[-1]) for keys in KEYS} - commented == set()


def _plain(node: Node) -> Any:
    if isinstance(node, MappingNode):
        return {entry.key.text: _plain(entry.value) for entry in node.entries}
    return [_plain(item) for item in node.items] if hasattr(node, "items") else node.text


def _texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _texts(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_texts(one) for one in value]
    return str(value).lower() if isinstance(value, bool) else str(value)
