"""Files of Kubeflow and compose become a riseml.yml, and each field that is not taken over is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.errors import UsageError
from riseml.capsules.manifest_import import import_manifest
from riseml.spec.config.loader import check_config

TABLE = Path(__file__).with_name("imports.txt")


def read_cases() -> list[tuple[str, str, str, str]]:
    cases = []
    for block in TABLE.read_text(encoding="utf-8").split("\n===== ")[1:]:
        title, _, body = block.partition("\n")
        text, config, notes = body.split(">>>>>\n")
        cases.append((title, text, config, notes.strip("\n")))
    return cases


CASES = read_cases()


@pytest.mark.parametrize(("text", "config", "notes"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_form_is_taken_over_and_each_field_that_is_not_is_named(text: str, config: str, notes: str) -> None:
    imported = import_manifest(text, "job.yaml", "folder")
    said = [f"not taken over: {part}" for part in imported.left_out]
    said += [f"changed: {part}" for part in imported.changed]
    said += [f"to do: {imported.to_fill}"] if imported.to_fill else []
    assert (imported.text, "\n".join(said)) == (config, notes)
    assert check_config(imported.text, "riseml.yml").problems == ()


@pytest.mark.parametrize("text", ["", "[]", "kind: Pod", "kind: TFJob", "kind: TFJob\nspec: 7", "[" * 500])
def test_an_invalid_manifest_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        import_manifest(text, "job.yaml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: XGBoostJob", "XGBoostJob: riseml has no framework that sets up XGBoost's tracker"),
        ("kind: PaddleJob", "no framework for PaddlePaddle"),
        ("kind: Service\n---\nkind: Pod\n", "has Service, Pod: riseml imports a TFJob"),
        ("kind: List\nitems: [{kind: TFJob}, {kind: JAXJob}]", r"several jobs \(TFJob, JAXJob\)"),
        ("services: {}", "services is not a mapping with a service"),
        ("services: {a: {command: 'x \"y'}}", "a quote is open"),
        ("a: &a [*a]", "is not YAML that riseml reads"),
    ],
)
def test_a_file_that_riseml_does_not_run_is_refused_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        import_manifest(text, "job.yaml")
