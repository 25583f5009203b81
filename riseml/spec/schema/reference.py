"""Generate the reference of riseml.yml from its schema.

`python -m riseml.spec.schema.reference > docs/riseml-yml.md`
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from riseml.spec.schema.contract import CONFIG, Contract, Schema
from riseml.spec.schema.sentences import flow
from riseml.spec.yaml.placeholders import BUILT_IN
from riseml.spec.yaml.problems import Path, path_text

_HEAD = """\
<!-- Generated from schemas/riseml.schema.json by `python -m riseml.spec.schema.reference`: edit the schema. -->

# riseml.yml

One file in the project folder says what to train. The smallest one:

```yaml
project: ai-toaster
train:
  image: python:3.11
  run: python train.py
```

`riseml validate` names every problem at once, with line, column and what to write instead; `riseml init` writes a first
file; `riseml.yml.example` shows every key with a comment. `riseml train -p lr=0.1` replaces a parameter, and
`--set train.resources.gpus=2` any other value, for one run.
"""

_FORMS = """\
## Forms

- **Memory**: `512M`, `16GiB`, `16G`, `4096MB`: powers of 1024 in any spelling. A bare number is MiB from 64 up
  (`16384`) and GiB below (`4`). `16 Gb` is bits, and refused.
- **Durations**: `90` (seconds), `30s`, `10m`, `2h`, `1d`, `1h30m`.
- **CPU cores**: `0.2`, `.5`, `2`.
- **Texts** need no quotes where a text is wanted: `version: 1.10` stays `1.10`, and a parameter's value `yes`, `012` or
  `1e-6` stays as written. A text with `: ` or ` #` in it needs quotes, and so does one that begins with `{{`, `*`, `&`,
  `@` or `!`.
- **Placeholders**: `{{name}}` in `run` is a parameter, or one of these, which riseml fills in for each job:
  BUILT_IN.

Files are at most 1 MiB, in UTF-8, with one YAML document of at most 10,000 values. Anchors and aliases are
read; YAML tags and merge keys are not.

## In an editor

`schemas/riseml.schema.json` gives completion, explanations and checks while you type. In VS Code with the YAML
extension, put into `settings.json`:

```json
{"yaml.schemas": {"./schemas/riseml.schema.json": "riseml.yml"}}
```

or begin the file with a line that any editor with the YAML language server reads, with the path of your copy:

```yaml
# yaml-language-server: $schema=./riseml.schema.json
```
"""

_TYPES = {
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "string": "text",
    "array": "list",
    "object": "map",
}
_FORMATS = {"memory": "memory", "duration": "duration", "lines": "text or list of texts", "image": "image"}


def reference() -> str:
    """The whole page."""
    built_in = ", ".join(f"`{{{{{name}}}}}`" for name in sorted(BUILT_IN))
    return "\n".join([_HEAD, *list_keys(CONFIG), _FORMS.replace("BUILT_IN", built_in)])


def list_keys(contract: Contract) -> Iterator[str]:
    """A chapter with one section for each key of a file."""
    yield "## Keys\n"
    required = set(_required(contract))
    for path, schema in contract.walk():
        yield _section(path, schema, path in required)


def _required(contract: Contract) -> Iterator[Path]:
    yield from ((name,) for name in contract.schema.get("required", []))
    for path, found in contract.walk():
        inner = found.get("items", {})
        yield from ((*path, name) for name in found.get("required", []))
        yield from ((*path, 0, name) for name in contract.resolve(inner).get("required", []))


def _section(path: Path, schema: Schema, required: bool) -> str:  # noqa: FBT001 - a cell of the page, not a switch
    name = path_text(path).replace("[0]", "[]")  # every item of a list
    level = "#" * min(6, name.count(".") + 3)
    facts = [_form(schema), *(["required"] if required else [])]
    if "default" in schema:
        facts.append(f"default `{flow(schema['default'])}`")
    lines = [f"{level} `{name}`", "", f"**{schema['title']}.** {schema['description']}", ""]
    lines.append(f"*{'; '.join(facts)}*" if facts else "")
    shown = "\n# or\n".join(f"{path[-1]}: {flow(example)}" for example in schema["examples"])
    return "\n".join([*lines, "", "```yaml", shown, "```", ""])


def _form(schema: Schema) -> str:
    if "enum" in schema:
        return " or ".join(f"`{one}`" for one in schema["enum"])
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    form = _FORMATS.get(schema.get("format", ""))
    if form is None or "object" in types:
        form = " or ".join(_TYPES[one] for one in types)
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        form += f", {low:,} to {high:,}"
    return form


if __name__ == "__main__":
    sys.stdout.write(reference())
