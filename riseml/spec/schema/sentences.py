"""Errors of the schema as sentences: what is wrong at which place, and what to write there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from riseml.spec.yaml.document import Mapping as MappingNode
from riseml.spec.yaml.document import Scalar
from riseml.spec.yaml.document import Sequence as SequenceNode
from riseml.spec.yaml.engine_url import read_url
from riseml.spec.yaml.problems import Path, Problem, make_problem, path_text, quoted
from riseml.spec.yaml.scalars import BadText, duration, memory, number
from riseml.spec.yaml.values import Settled

Schema = Mapping[str, Any]
_SPECIAL = re.compile(r"^[:&*!@]|[{},\[\]]|: ")  # what YAML does not take for a text without quotes

_TYPES = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "string": "a text",
    "array": "a list",
    "object": "a map of keys and values",
}
_FORMATS = {
    "memory": "an amount of memory",
    "duration": "a duration",
    "lines": "a text or a list of texts",
    "line": "a text",
    "image": "the name of an image",
    "version": "a version",
    "variable": "a text such as NAME or NAME=value",
    "hosts": "a list of hosts",
    "gpus": "a list of device ids",
    "storage": "a path, or a map that names a volume",
}
_PATTERNS = {
    "name": ("{} is no project name", "use letters, digits, - and _"),
    "image": ("{} is no image", "write it as in `docker pull`, such as python:3.11"),
    "version": ("{} is no version", "write the tag of the image, such as 2.21.0"),
    "variable": ("{} names no environment variable", "write NAME or NAME=value; names have letters, digits and _"),
    "parameters": ("{} cannot name a parameter", "begin with a letter; use letters, digits, - and _"),
    "env": ("{} cannot name an environment variable", "begin with a letter; use letters, digits and _"),
    "host": ("{} is no name of a host", "use small letters, digits and -"),
    "address": ("{} is no address", "write a host name or an IP address, without scheme and port"),
    "device": ("{} is no device id", "write an index such as 0, or a UUID as `nvidia-smi -L` shows it: GPU-..."),
    "labels": ("{} cannot name a label", "begin and end with a letter or digit; use letters, digits, . _ / and -"),
    "storage": ("{} is no absolute path", "begin it with /, or name a volume: `{volume: riseml-output}`"),
    "volume": ("{} is no name of a volume", "use two or more letters, digits, _ . and -; begin with a letter or digit"),
    "options": ("{} cannot name a driver option", "use letters, digits, . _ and -"),
    "registry": ("{} is no registry with a path", "write it as host[:port]/path, without https:// and without a tag"),
}
_SYNONYMS = {
    "memory": "mem",
    "ram": "mem",
    "cpu_count": "cpus",
    "command": "run",
    "commands": "run",
    "cmd": "run",
    "script": "run",
    "entrypoint": "run",
    "environment": "env",
    "hyperparameters": "parameters",
    "params": "parameters",
    "parameter_servers": "ps",
    "docker": "image",
    "timeout": "max_duration",
    "retries": "retry",
    "restart": "retry",
    "parallelism": "concurrency",
    "steps": "run",
    "name": "project",
    "cores": "cpus",
    "nodes": "hosts",
    "machines": "hosts",
    "servers": "hosts",
    "engine": "url",
    "uri": "url",
    "endpoint": "url",
    "ip": "address",
    "devices": "gpus",
    "tags": "labels",
    "ssh_key": "identity",
    "identity_file": "identity",
    "private_key": "key",
    "cacert": "ca",
    "certificate": "cert",
    "driver_opts": "options",
    "opts": "options",
    "results": "output",
}


def explain(
    error: Any, path: Path, settled: Settled, at: Callable[[Path], Schema], homes: Mapping[str, Path]
) -> Iterator[Problem]:
    """The problems behind one error of jsonschema at `path`.

    `at` gives the schema of a path, `homes` the section that each known key belongs to. Paths with a problem become
    `bad` in `settled`.
    """
    schema = at(path)
    if error.validator == "additionalProperties":
        yield from _unknown_keys(path, settled, schema, homes)
    elif error.validator == "required":
        yield from _missing_keys(path, settled, schema, at)
    elif "propertyNames" in error.absolute_schema_path:
        settled.bad.add((*path, error.instance))
        problem, hint = _PATTERNS[schema["format"]]
        where = settled.key_place((*path, error.instance))
        yield make_problem(where, (*path, error.instance), problem.format(quoted(error.instance)), hint)
    else:
        settled.bad.add(path)
        problem, hint = _wrong_value(error, path, settled, schema)
        yield make_problem(settled.place(path), path, problem, hint)


def suggest(text: str, known: Mapping[str, Any] | list[str]) -> str | None:
    """The known word that `text` was probably meant to be."""
    lower = text.lower()
    if _SYNONYMS.get(lower) in known:
        return _SYNONYMS[lower]
    found = difflib.get_close_matches(lower, list(known), 1, 0.65)
    return found[0] if found else None


def _unknown_keys(path: Path, settled: Settled, schema: Schema, homes: Mapping[str, Path]) -> Iterator[Problem]:
    known = schema.get("properties", {})
    node = settled.nodes[path]
    assert isinstance(node, MappingNode)
    for entry in node.entries:
        key = entry.key.text
        if key in known:
            continue
        settled.bad.add((*path, key))
        yield make_problem(entry.key.place, (*path, key), "unknown key", _where_it_belongs(key, path, known, homes))


def _where_it_belongs(key: str, path: Path, known: Mapping[str, Any], homes: Mapping[str, Path]) -> str:
    near = suggest(key, known)
    if near is not None and _SYNONYMS.get(key.lower()) == near:
        return f'did you mean "{near}"?'
    if near is not None and (key not in homes or difflib.SequenceMatcher(None, key, near).ratio() > 0.85):
        return f'did you mean "{near}"?'
    if key in homes:
        return f"it belongs {_section(homes[key])}"
    far = suggest(key, homes)
    if far is not None and homes[far] != path:
        return f'did you mean "{far}" {_section(homes[far])}?'
    return f"known here: {', '.join(known)}"


def _section(path: Path) -> str:
    """Where a key belongs; an index stands for every item of its list."""
    if not path:
        return "at the top of the file"
    return "in " + path_text(path).replace("[0]", "[]")


def _missing_keys(path: Path, settled: Settled, schema: Schema, at: Callable[[Path], Schema]) -> Iterator[Problem]:
    node = settled.nodes[path]
    assert isinstance(node, MappingNode)
    there = {entry.key.text for entry in node.entries}
    known = schema["properties"]
    meant = {suggest(key, known) for key in there if key not in known}
    for name in schema["required"]:
        if name in there or name in meant:
            continue
        examples = at((*path, name)).get("examples", [])
        hint = f"write `{name}: {flow(examples[0])}`" if examples else ""
        yield make_problem(settled.key_place(path), (*path, name), "is missing", hint)


def _wrong_value(error: Any, path: Path, settled: Settled, schema: Schema) -> tuple[str, str]:
    value = error.instance
    bound = error.validator_value
    match error.validator:
        case "type":
            return _wrong_type(path, settled, schema)
        case "enum":
            near = suggest(str(value), [str(one) for one in bound])
            hint = "" if near is None else f'did you mean "{near}"?'
            return f"must be {_or([str(one) for one in bound])}, not {quoted(str(value))}", hint
        case "pattern":
            return _wrong_text(str(value), schema)
        case "minimum":
            return f"must be at least {bound}, not {value}", ""
        case "maximum":
            return f"must be at most {bound:,}, not {value}", ""
        case "exclusiveMinimum":
            return f"must be more than {bound}, not {value}", ""
        case "minLength" | "minItems" | "minProperties":
            what = {"minLength": "an empty text", "minItems": "an empty list", "minProperties": "an empty map"}
            return f"is {what[error.validator]}", _example(path, schema)
        case "maxLength":
            return f"has {len(value):,} characters; at most {bound:,} are allowed", ""
        case "not":
            return f"cannot be {flow(error.instance)}", _example(path, schema)
        case _:
            return str(error.message), ""


def _wrong_text(text: str, schema: Schema) -> tuple[str, str]:
    readers = {"memory": memory, "duration": duration, "host-url": read_url}
    form = schema.get("format", "")
    if form in readers:
        try:
            readers[form](text)
        except BadText as bad:
            return bad.problem, bad.hint
    problem, hint = _PATTERNS.get(form, ("{} is not allowed here", ""))
    if form == "image" and " " in text:
        hint = "an image has no spaces; write it as in `docker pull`, such as python:3.11"
    if form == "image" and re.search(r"[A-Z][^:@]*$", text.rpartition("/")[2].split(":")[0]):
        hint = "Docker wants the name in lower case"
    return problem.format(quoted(text)), hint


def _wrong_type(path: Path, settled: Settled, schema: Schema) -> tuple[str, str]:
    node = settled.nodes[path]
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    wanted = _FORMATS.get(schema.get("format", "")) or _or([_TYPES[one] for one in types])
    if isinstance(node, Scalar):
        return _wrong_scalar(node, path, types, wanted, schema)
    if isinstance(node, SequenceNode):
        hint = "leave out the dash" if types == ["object"] and not node.flow else _example(path, schema)
        return f"must be {wanted}, not a list", hint
    if schema.get("format") == "variable":
        hint = "write NAME=value"
    elif types == ["string"] or ("array" in types and schema.get("format") not in ("hosts", "gpus")):
        hint = "a text that contains `: ` needs quotes"
    else:
        hint = _example(path, schema)
    return f"must be {wanted}, not a map", hint


def _wrong_scalar(node: Scalar, path: Path, types: list[str], wanted: str, schema: Schema) -> tuple[str, str]:
    if node.empty:
        if types == ["object"]:
            return "is an empty section", "write its keys below it, indented, or leave it out"
        passes = 'write "" for an empty text; in a list, a name alone passes yours through'
        return "has no value", passes if schema.get("format") == "value" else _example(path, schema)
    if not node.plain and "\n" not in node.text and _is_number(node.text) and {"integer", "number"} & set(types):
        return f"must be {wanted}, not a text in quotes", f"write {node.text}"
    if types == ["array"] and schema.get("format") not in _FORMATS:
        return f"must be {wanted}, not {quoted(node.text)}", f"write [{node.text}]"
    shown = node.text if node.plain and _is_number(node.text) else quoted(node.text)
    return f"must be {wanted}, not {shown}", _example(path, schema)


def _is_number(text: str) -> bool:
    try:
        return number(text) is not None
    except BadText:
        return False


def _example(path: Path, schema: Schema) -> str:
    """A hint that shows the first example of a place."""
    examples = schema.get("examples")
    if not examples or not path or isinstance(path[-1], int):
        return ""
    return f"for example `{path[-1]}: {flow(examples[0])}`"


def flow(value: Any) -> str:
    """A value as YAML writes it in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(one) for one in value) + "]"
    text = str(value)
    return f'"{text}"' if isinstance(value, str) and (_is_number(text) or _SPECIAL.search(text)) else text


def _or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
