"""The part of a reference page that both files share: one section for each key of a schema."""

from __future__ import annotations

import re
from collections.abc import Iterator

from riseml.spec.schema.contract import PARAMETER_MARK, FileContract, Schema
from riseml.spec.schema.sentences import format_flow, list_types
from riseml.spec.yaml.problems import KeyPath, format_key_path

_PAGE_COMMAND = re.compile(r"`riseml docs ([a-z-]+)`")  # names a page where no link can: in an editor, on a terminal
_TYPES = {
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "false": "`false`",
    "string": "string",
    "array": "list",
    "object": "map",
}
_FORMATS = {"memory": "memory", "duration": "duration", "lines": "string or list of strings", "image": "image"}


def list_key_sections(contract: FileContract) -> Iterator[str]:
    """Yield the lines of a chapter with one section for each key of a file."""
    yield "## Keys\n"
    required = set(_list_required(contract))
    for path, schema in contract.walk():
        yield _write_section(path, schema, path in required)


def _list_required(contract: FileContract) -> Iterator[KeyPath]:
    yield from ((name,) for name in contract.schema.get("required", []))
    for path, schema in contract.walk():
        inner = schema.get("items", {})
        yield from ((*path, name) for name in schema.get("required", []))
        yield from ((*path, 0, name) for name in contract.resolve(inner).get("required", []))


def _write_section(path: KeyPath, schema: Schema, required: bool) -> str:  # noqa: FBT001 - a cell of the page, not a switch
    name = format_key_path(path).replace("[0]", "[]")  # every item of a list
    level = "#" * min(6, name.count(".") + 3)
    facts = [_describe_form(schema), *(["required"] if required else [])]
    if "default" in schema:
        facts.append(f"default `{format_flow(schema['default'])}`")
    description = _PAGE_COMMAND.sub(r"[\1.md](\1.md)", schema["description"])
    lines = [f"{level} `{name}`", "", f"**{schema['title']}.** {description}", ""]
    lines.append(f"*{'; '.join(facts)}*" if facts else "")
    examples = "\n# or\n".join(f"{path[-1]}: {format_flow(example)}" for example in schema["examples"])
    return "\n".join([*lines, "", "```yaml", examples, "```", ""])


def _describe_form(schema: Schema) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    types = list_types(schema)
    form = _FORMATS.get(schema.get("format", ""))
    if form is None or "object" in types:
        form = " or ".join(_TYPES[name] for name in types)
    low = schema.get("minimum")
    high = schema.get("maximum")
    if low is not None and high is not None:
        form += f", {low:,} to {high:,}"
    return f'{form}; or a parameter, `"{{{{name}}}}"`' if schema.get(PARAMETER_MARK) else form
