"""The section `variables`: which variables of the environment parameters become."""

from __future__ import annotations

from collections.abc import Mapping

from riseml.spec.scalars.placeholders import variable_name
from riseml.spec.scalars.texts import quote_text
from riseml.spec.schema.near_words import suggest_word
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_PATH: KeyPath = ("train", "variables")


def read_variable_names(file: SourceFile) -> tuple[tuple[str, str], ...]:
    """Return the parameters whose variables have other names, with these; empty: jobs get no variable.

    Problems go to `file`.
    """
    section = file.value_at(("train", "parameters")) or {}
    names = list_variable_names(file)
    for name in names:
        if names[name].lower() == "true":
            file.refuse((*_PATH, name), "true is not the name of a variable", "write a name, or false for none")
        if name not in section and ("train", "parameters") not in file.bad:
            near = suggest_word(name, list(section))
            hint = f'did you mean "{near}"?' if near else "name a parameter of `parameters`"
            file.refuse_key((*_PATH, name), f"there is no parameter {quote_text(name)}", hint)
    return tuple(names.items())


def list_variable_names(file: SourceFile) -> Mapping[str, str]:
    """Return the names that the section gives; empty: jobs get no variable."""
    texts = {str(path[-1]): str(value) for path, value in file.items_at(_PATH).items()}
    return {name: "" if text.lower() == "false" else text for name, text in texts.items()}


def name_variable(file: SourceFile, parameter: str) -> str:
    """Return the variable of a parameter; empty: it has none."""
    return list_variable_names(file).get(parameter, variable_name(parameter))
