"""Write the reference of riseml.yml from its schema: `python -m riseml.spec.config.reference > docs/riseml-yml.md`."""

from __future__ import annotations

import sys

from riseml.spec.scalars.placeholders import BUILT_IN_PLACEHOLDERS
from riseml.spec.schema.contract import CONFIG_CONTRACT
from riseml.spec.schema.reference import list_key_sections

_HEAD = """\
<!-- Generated from schemas/riseml.schema.json by `python -m riseml.spec.config.reference`: edit the schema. -->

# riseml.yml

One file in the project folder says what to train. The smallest one:

```yaml
project: ai-toaster
train:
  image: python:3.11
  run: python train.py
```

`riseml validate` lists all problems at once, with line, column and what to write instead. `riseml init` writes a
starter file. `riseml.yml.example` shows every key with a comment. For one run, `riseml train -p lr=0.1` replaces a
parameter and `--set train.resources.gpus=2` any other value.

`riseml train -f conf/a.yml` uses another file of the same project: the project is the nearest folder with a riseml.yml,
from the file's own folder up to the working directory. When there is none, it is the file's own folder. `train` says so
when it sends another folder than the working directory.
"""

_FORMS = """\
## Forms

- **Memory**: a number with K, M, G or T. Every spelling is a power of 1024: `512M`, `512MB`, `512Mi` and `512MiB` are
  the same, `500MB` is 500 MiB, `1GB` is 1024 MiB. A number without a unit is MiB from 64 up (`16384`) and GiB below
  (`4`), with a warning. `16Gb` means bits and is refused. Sizes in variables such as `RISEML_LOG_LIMIT` are written
  the same way, always with a unit.
- **Durations**: `90` (seconds), `30s`, `10m`, `2h`, `1d`, `1h30m`.
- **CPU cores**: `0.2`, `.5`, `2`.
- **Strings** need no quotes where a key takes a string: `version: 1.10` stays `1.10`, and the value `yes`, `012` or
  `1e-6` of a parameter stays as written. A string with `: ` or ` #` in it needs quotes, and so does one that begins
  with `{{`, `*`, `&`, `@` or `!`.
- **Placeholders**: `{{name}}` in `run` is a parameter, or one of these, which riseml fills in for each job:
  BUILT_IN.
  `{{job_name}}` is RISEML_JOB without a framework. With TensorFlow it is the flag of TensorFlow 1 scripts, which know
  only `worker` (the master is worker 0, and so is the one job of a run that is not distributed) and `ps`.
  With `roles` it is the role, jobs that decide or help are the workers, and those that serve are the ps;
  `{{role_port}}`, `{{learner_address}}` and the others are in [frameworks.md](frameworks.md).
  A value is one piece of text for the shell, whatever it contains. In nested code, such as `$(echo "{{name}}")`, a
  comment or a here-document, no quoting is safe: there a value with other characters than letters, digits and
  `_./:=,@%+-` is refused when you submit. A program in a here-document can read it from its environment.
- **Counts and resources as parameters**: `worker: "{{workers}}"`, `mem: "{{mem}}GiB"`, in quotes, wherever a key says
  so below its title. Each value must be one that the key takes: `riseml validate` checks all combinations, of
  which a set and a search may have 1,000, and shows the jobs of each. A set whose experiments differ in their jobs is
  how a scaling table is made ([results.md](results.md)).

A file has at most 1 MiB of UTF-8 and one YAML document of at most 10,000 values. Anchors and aliases are supported,
YAML tags and merge keys are not.

## In an editor

With its JSON Schema an editor completes, explains and checks keys while you type: [editors.md](editors.md).
"""


def render_config_reference() -> str:
    """Return the whole page."""
    built_in = ", ".join(f"`{{{{{name}}}}}`" for name in sorted(BUILT_IN_PLACEHOLDERS))
    return "\n".join([_HEAD, *list_key_sections(CONFIG_CONTRACT), _FORMS.replace("BUILT_IN", built_in)])


if __name__ == "__main__":
    sys.stdout.write(render_config_reference())
