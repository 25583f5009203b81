"""Errors of jsonschema as problems: where, what is wrong, and what to write instead.

The messages of jsonschema have no line, no column and no hint. `cpu: 1` in `resources` is "Additional properties are
not allowed ('cpu' was unexpected)" there, and `riseml.yml:6:5 train.resources.cpu: unknown key; did you mean "cpus"?`
here. jsonschema gives 172 of the problems in tests/unit/spec/broken.txt and broken_pools.txt (counted by running these
tables); this module adds a position and a path to all of them, and a hint to 149.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from riseml.spec.scalars.quantities import parse_duration, parse_memory, parse_number
from riseml.spec.scalars.texts import NO_METRIC_NAME, BadText, quote_text
from riseml.spec.schema.foreign_job_words import find_place
from riseml.spec.schema.foreign_words import explain_key, explain_map, explain_value, translate_key
from riseml.spec.schema.key_hints import UnknownKey, explain_unknown_key, suggest_key
from riseml.spec.schema.near_words import suggest_word
from riseml.spec.yaml.document import MappingNode, ScalarNode, SequenceNode
from riseml.spec.yaml.problems import KeyPath, Problem, make_problem
from riseml.spec.yaml.values import SourceFile

Schema = Mapping[str, Any]
Places = Mapping[str, list[KeyPath]]
_SPECIAL = re.compile(r"^[:&*!@]|[{},\[\]]|: ")  # a string with these needs quotes in YAML

_TYPES = {
    "integer": ("a whole number",),
    "number": ("a number",),
    "boolean": ("true", "false"),
    "false": ("false",),
    "string": ("a string",),
    "array": ("a list",),
    "object": ("a map of keys and values",),
}
_FORMATS = {
    "memory": "an amount of memory",
    "duration": "a duration",
    "lines": "a string or a list of strings",
    "line": "a string",
    "pattern": "a pattern",
    "image": "an image",
    "gpu-model": "a model of GPU",
    "version": "a version",
    "package-version": "a version",
    "variable": "a string such as NAME or NAME=value",
    "hosts": "a list of hosts",
    "gpus": "`all`, or a list of device ids",
    "storage": "a path, or a map that names a volume",
    "data": "a list of addresses and folders",
    "secret-files": "a list of secrets and files",
    "secret": "the name of a secret",
    "secret-file": "the name of a file",
    "value": "a text, a number, true, false, or `{secret: NAME}`",
    "data-url": "an address",
    "input-url": "the output of an experiment, such as output://4/model",
    "user-id": "a uid, or a map with uid and gid",
}
_PATTERNS = {
    "name": ("{} is not a project name", "begin with a letter, a digit or _; use letters, digits, - and _"),
    "image": ("{} is not an image", "write it as in `docker pull`, such as python:3.11"),
    "version": ("{} is not a version", "write the tag of the image, such as 2.21.0"),
    "package-version": ("{} is not a version", "write a version of the package"),
    "variable": ("{} is not an environment variable", "write NAME or NAME=value; names have letters, digits and _"),
    "parameters": ("{} is not a parameter name", "begin with a letter; use letters, digits, -, _ and single dots"),
    "env": ("{} is not the name of an environment variable", "begin with a letter; use letters, digits and _"),
    "host": ("{} is not a host name", "use lower-case letters, digits and -"),
    "address": ("{} is not an address", "write a host name or an IP address, without scheme and port"),
    "gpu-model": ("{} is not a model of GPU", "write a name such as a100; the number of GPUs is `gpus`"),
    "gpus": ("{} is neither `all` nor a list", "write `gpus: all`, or device ids such as `gpus: [0, 1]`"),
    "device": ("{} is not a device id", "write an index such as 0, or a UUID as `nvidia-smi -L` shows it: GPU-..."),
    "roles": ("{} is not the name of a role", "use lower-case letters and -; begin and end with a letter"),
    "labels": ("{} is not a label name", "begin and end with a letter or digit; use letters, digits, . _ / and -"),
    "metric": NO_METRIC_NAME,
    "variable-name": ("{} is not the name of a variable", "use letters, digits and _; or write false for none"),
    "data-folder": ("{} is not the name of a folder", "use letters, digits, . _ and -; begin with a letter or digit"),
    "inputs": ("{} is not the name of an input", "begin with a letter; use letters, digits, _ and -"),
    "notify-event": (
        "{} is neither an end nor a condition",
        "write finished, failed, killed, remark, or a metric such as `accuracy > 0.95`",
    ),
    "webhook": (
        "{} is not the name of a webhook",
        "use the `name` of one in notify.yml; an address belongs there alone",
    ),
    "secret": ("{} is not the name of a secret", "begin with a letter; use letters, digits, _, . and -"),
    "secret-file": (
        "{} is not the name of a file",
        "use letters, digits, _, . and -; no folder, and no . at the start",
    ),
    "store": ("{} is not the name of a store", "use lower-case letters, digits and -"),
    "storage": ("{} is not an absolute path", "begin it with /, or use a volume: `{volume: riseml-output}`"),
    "volume": ("{} is not a volume name", "use two or more letters, digits, _ . and -; begin with a letter or digit"),
    "switch": ("{} is neither true, nor false, nor a map of keys and values", "write true"),
    "options": ("{} is not the name of a driver option", "use letters, digits, . _ and -"),
    "registry": (
        "{} is not a registry with a path",
        "write it as host[:port]/path, without https:// and without a tag",
    ),
    "listener": ("{} is not an address with a port", "write 0.0.0.0:8443, [::]:8443 or the address of one interface"),
    "server-name": ("{} is not a host name", "write a host name or an IP address, without scheme and port"),
    "user-names": (
        "{} is not the name of a user",
        "use at most 32 lower-case letters, digits and -; begin with a letter",
    ),
    "issuer": ("{} is not the address of a provider", "it begins with https://; http:// is allowed on loopback only"),
    "oidc-scope": ("{} is not a scope", "write a word such as groups, without spaces"),
    "image-pattern": ("{} is not a pattern of images", "write it as an image, with * for any characters: `python:*`"),
}


def explain_schema_error(
    error: Any, path: KeyPath, file: SourceFile, schema_at: Callable[[KeyPath], Schema], places: Places
) -> Iterator[Problem]:
    """Yield the problems that one error of jsonschema stands for.

    Args:
        error: the error.
        path: where it is.
        file: the file; paths with a problem become `bad` there.
        schema_at: returns the schema of a path.
        places: the sections of each known key, the topmost first.
    """
    schema = schema_at(path)
    if error.validator == "additionalProperties":
        yield from _explain_unknown_keys(path, file, schema, places)
    elif error.validator == "required":
        yield from _explain_missing_keys(path, file, schema, schema_at)
    elif error.validator == "maxProperties" and _has_unknown_keys(path, file, schema):
        return  # the explanation of the unknown keys is enough
    elif error.validator == "anyOf":  # one of several keys is required: suggest the first
        yield from _explain_missing_keys(path, file, {**schema, **error.validator_value[0]}, schema_at)
    elif "propertyNames" in error.absolute_schema_path:
        file.bad.add((*path, error.instance))
        where = file.find_key_position((*path, error.instance))
        yield make_problem(where, (*path, error.instance), *_explain_wrong_name(error, schema))
    else:
        file.bad.add(path)
        problem, hint = _explain_wrong_value(error, path, file, schema)
        yield make_problem(file.find_position(path), path, problem, hint)


def _has_unknown_keys(path: KeyPath, file: SourceFile, schema: Schema) -> bool:
    node = file.nodes[path]
    properties = schema.get("properties", {})
    return (
        bool(properties)
        and isinstance(node, MappingNode)
        and any(entry.key.text not in properties for entry in node.entries)
    )


def _explain_unknown_keys(path: KeyPath, file: SourceFile, schema: Schema, places: Places) -> Iterator[Problem]:
    properties = schema.get("properties", {})
    node = file.nodes[path]
    assert isinstance(node, MappingNode)
    suggested: set[str] = set()
    for entry in node.entries:
        key = entry.key.text
        if key in properties:
            continue
        file.bad.add((*path, key))
        hint = explain_key(key, path, list(properties))
        if hint is None:
            hint = _explain_usual_key(key, path, file, properties, places)
        elif hint in suggested:
            continue  # `{min: 0, max: 1}` is one problem: both need the same word before them
        suggested.add(hint)
        yield make_problem(entry.key.position, (*path, key), "unknown key", hint)


def _explain_usual_key(key: str, path: KeyPath, file: SourceFile, properties: Mapping[str, Any], places: Places) -> str:
    """Return the hint for a key that is no word of a search or of a parameter in another tool."""
    train = file.value.get("train") if isinstance(file.value, dict) else None
    hint = explain_unknown_key(
        UnknownKey(
            key,
            path,
            tuple(properties),
            places,
            train if isinstance(train, dict) else {},
            is_config="train" in places,
        )
    )
    if path[:2] == ("train", "parameters") and len(path) == 3 and not hint.startswith("did you mean"):
        return f"known here: {', '.join(properties)}; a nested name is one key: `{path[-1]}.{key}`"
    return hint


def _explain_missing_keys(
    path: KeyPath, file: SourceFile, schema: Schema, schema_at: Callable[[KeyPath], Schema]
) -> Iterator[Problem]:
    node = file.nodes[path]
    assert isinstance(node, MappingNode)
    present = {entry.key.text for entry in node.entries}
    properties = schema["properties"]
    unknown = [key for key in present if key not in properties]
    translations = {translate_key(key, path) or _find_key(key, properties) for key in unknown}
    for name in schema["required"]:
        if name in present or name in translations:
            continue
        examples = schema_at((*path, name)).get("examples", [])
        hint = f"write `{name}: {format_flow(examples[0])}`" if examples else ""
        yield make_problem(file.find_key_position(path), (*path, name), "is missing", hint)


def _find_key(key: str, properties: Mapping[str, Any]) -> str | None:
    """Return the key of a section that an unknown one means."""
    place = find_place(key)
    return str(place[-1]) if place is not None and place[-1] in properties else suggest_key(key, properties)


def _explain_wrong_name(error: Any, schema: Schema) -> tuple[str, str]:
    """Return what is wrong with a key that the user names."""
    name = error.instance
    if error.validator == "maxLength":
        return f"the name has {len(name):,} characters; at most {error.validator_value:,} are allowed", "shorten it"
    problem, hint = _PATTERNS[schema["format"]]
    return problem.format(quote_text(name)), hint


def _explain_wrong_value(error: Any, path: KeyPath, file: SourceFile, schema: Schema) -> tuple[str, str]:
    value = error.instance
    bound = error.validator_value
    match error.validator:
        case "type":
            return _explain_wrong_type(path, file, schema)
        case "enum":
            foreign = explain_value(str(value), path)
            near = None if foreign else suggest_word(str(value), [str(choice) for choice in bound])
            hint = foreign or ("" if near is None else f'did you mean "{near}"?')
            return f"must be {_join_with_or([str(choice) for choice in bound])}, not {quote_text(str(value))}", hint
        case "pattern":
            return _explain_wrong_text(str(value), schema)
        case "minimum":
            return f"must be at least {bound}, not {value}", ""
        case "maximum":
            return f"must be at most {bound:,}, not {value}", ""
        case "exclusiveMinimum":
            return f"must be more than {bound}, not {value}", ""
        case "minLength" | "minItems" | "minProperties":
            emptiness = {"minLength": "an empty string", "minItems": "an empty list", "minProperties": "an empty map"}
            return f"is {emptiness[error.validator]}", _example_hint(path, schema)
        case "maxLength" | "maxItems" | "maxProperties":
            return _explain_too_many(value, bound)
        case "not":
            return f"cannot be {format_flow(error.instance)}", _example_hint(path, schema)
        case _:
            return str(error.message), ""


def _explain_too_many(value: Any, bound: int) -> tuple[str, str]:
    if isinstance(value, str):
        return f"has {len(value):,} characters; at most {bound:,} are allowed", ""
    if isinstance(value, list):
        return f"has {len(value):,} items; at most {bound:,} are allowed", ""
    if bound == 1:
        return f"has {len(value):,} keys, and one is allowed", f"keep {_join_with_or([str(key) for key in value])}"
    return f"has {len(value):,} keys; at most {bound:,} are allowed", ""


def _explain_wrong_text(text: str, schema: Schema) -> tuple[str, str]:
    from riseml.spec.scalars.engine_url import parse_engine_url  # a riseml.yml has no engines

    readers = {"memory": parse_memory, "duration": parse_duration, "host-url": parse_engine_url}
    form = schema.get("format", "")
    if form in readers:
        try:
            readers[form](text)
        except BadText as bad:
            return bad.problem, bad.hint
    problem, hint = _PATTERNS.get(form, ("{} is not allowed here", ""))
    if form == "package-version":
        hint = f"{hint}, such as {schema['examples'][0]}"
    if form == "image" and " " in text:
        hint = "an image has no spaces; write it as in `docker pull`, such as python:3.11"
    if form == "image" and re.search(r"[A-Z][^:@]*$", text.rpartition("/")[2].split(":")[0]):
        hint = "Docker requires lower case"
    return problem.format(quote_text(text)), hint


def _explain_wrong_type(path: KeyPath, file: SourceFile, schema: Schema) -> tuple[str, str]:
    node = file.nodes[path]
    types = [name for name in list_types(schema) if name != "string" or schema.get("format") != "formula"]
    expected = _FORMATS.get(schema.get("format", "")) or _join_with_or(
        [word for name in types for word in _TYPES[name]]
    )
    if isinstance(node, ScalarNode):
        return _explain_wrong_scalar(node, path, types, expected, schema)
    if isinstance(node, SequenceNode):
        hint = "remove the dash" if types == ["object"] and not node.flow else _example_hint(path, schema)
        return f"must be {expected}, not a list", hint
    if schema.get("format") == "variable":
        hint = "write NAME=value"
    elif foreign := explain_map(path):
        hint = foreign
    elif types == ["string"] or (
        "array" in types and schema.get("format") not in ("hosts", "gpus", "points", "secret-files")
    ):
        hint = "a string with `: ` in it needs quotes"
    else:
        hint = _example_hint(path, schema)
    return f"must be {expected}, not a map", hint


def _explain_wrong_scalar(
    node: ScalarNode, path: KeyPath, types: list[str], expected: str, schema: Schema
) -> tuple[str, str]:
    if node.empty:
        if types == ["object"]:
            return "is an empty section", "write its keys below it, indented, or remove it"
        passes = 'write "" for an empty string; a list such as [NAME] passes your own value through'
        return "has no value", passes if schema.get("format") == "value" else _example_hint(path, schema)
    if not node.plain and "\n" not in node.text and _is_number(node.text) and {"integer", "number"} & set(types):
        return f"must be {expected}, not a quoted string", f"write {node.text}"
    if types == ["object"] and "secret" in schema.get("properties", ()):
        return f"must be `{{secret: NAME}}`, not {quote_text(node.text)}", "write NAME=value for another value"
    if types == ["array"] and schema.get("format") not in _FORMATS:
        return f"must be {expected}, not {quote_text(node.text)}", f"write [{node.text}]"
    quoted = node.text if node.plain and _is_number(node.text) else quote_text(node.text)
    return f"must be {expected}, not {quoted}", _example_hint(path, schema)


def list_types(schema: Schema) -> list[str]:
    """Return the JSON types of a schema, with "false" for a boolean that must not be true; a key without a value, which
    some sections allow, is not a type of its own.
    """
    written = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    types = [name for name in written if name != "null"]
    only_false = schema.get("not") == {"const": True}
    return ["false" if name == "boolean" and only_false else name for name in types]


def _is_number(text: str) -> bool:
    try:
        return parse_number(text) is not None
    except BadText:
        return False


def _example_hint(path: KeyPath, schema: Schema) -> str:
    """Return a hint with the first example of the schema."""
    examples = schema.get("examples")
    if not examples or not path or isinstance(path[-1], int):
        return ""
    return f"for example `{path[-1]}: {format_flow(examples[0])}`"


def format_flow(value: Any) -> str:
    """Return a value as YAML writes it on one line (flow style)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {format_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(format_flow(item) for item in value) + "]"
    text = str(value)
    return f'"{text}"' if isinstance(value, str) and (_is_number(text) or _SPECIAL.search(text)) else text


def _join_with_or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
