"""`-p` and `--set`: they replace values of the file, and their problems name the option."""

from __future__ import annotations

import pytest

from riseml.spec.config.loader import Overrides, check_config, load_config
from riseml.spec.config.types import Parameter

TEXT = """\
project: x
train:
  image: a
  run: t {{lr}}
  resources: {cpus: 1}
  parameters: {lr: [0.1, 0.2]}
"""


def _told(*, parameter: tuple[str, str] | None = None, setting: tuple[str, str] | None = None) -> list[str]:
    overrides = Overrides((parameter,) if parameter else (), (setting,) if setting else ())
    return [str(problem) for problem in check_config(TEXT, overrides=overrides).problems]


def test_a_parameter_is_replaced_as_written() -> None:
    spec = load_config(TEXT, overrides=Overrides((("lr", "[1, yes] # 1.10"),)))
    assert spec.train.parameters == (Parameter("lr", ("[1, yes] # 1.10",)),)


def test_the_last_one_of_a_name_counts() -> None:
    spec = load_config(TEXT, overrides=Overrides((("lr", "1"), ("lr", "")), (("project", "y"), ("project", "012"))))
    assert spec.train.parameters == (Parameter("lr", ("",)),)
    assert spec.project == "012"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("[64,128]", ("64", "128")),
        ("[0.10, 1e-6, '0.1, 0.2']", ("0.10", "1e-6", "0.1, 0.2")),
        ('["64,128"]', ("64,128",)),
        ("[]", ("[]",)),
        ("[[1, 2], [3]]", ("[[1, 2], [3]]",)),
        ("[1, 2", ("[1, 2",)),
        ("[{a: 1}]", ("[{a: 1}]",)),
        ("adam,sgd", ("adam,sgd",)),
        (",", (",",)),
    ],
)
def test_a_list_is_a_grid_and_any_other_text_stays_as_it_is(text: str, values: tuple[str, ...]) -> None:
    assert load_config(TEXT, overrides=Overrides((("lr", text),))).train.parameters == (Parameter("lr", values),)


def test_a_text_with_commas_that_may_be_a_list_is_refused_with_both_forms() -> None:
    name = "train.parameters.lr: "
    assert _told(parameter=("lr", "0.1,0.01")) == [
        f'-p lr=0.1,0.01:1:1 {name}"0.1,0.01" may be 2 values, or one text; '
        """write -p 'lr=[0.1, 0.01]' for the values, -p 'lr=["0.1,0.01"]' for the text"""
    ]


@pytest.mark.parametrize("text", ["[64,128]", "0.1,0.01", "adam,sgd"])
def test_a_value_that_the_file_has_is_taken_as_it_is(text: str) -> None:
    """`riseml rerun` and `riseml diff` name the values of a finished experiment."""
    file = TEXT.replace("[0.1, 0.2]", f'["{text}", adam, sgd]')
    assert load_config(file, overrides=Overrides((("lr", text),))).train.parameters == (Parameter("lr", (text,)),)


def test_a_value_of_a_parameter_with_a_condition_is_taken_as_it_is() -> None:
    file = TEXT.replace("[0.1, 0.2]", '{values: ["0.9,0.999", "[1]"]}')
    for text in ("0.9,0.999", "[1]"):
        assert load_config(file, overrides=Overrides((("lr", text),))).train.parameters == (Parameter("lr", (text,)),)


def test_words_of_the_file_with_commas_are_refused_too() -> None:
    file = TEXT.replace("[0.1, 0.2]", "[adam, sgd, lamb]")
    problems = check_config(file, overrides=Overrides((("lr", "adam, sgd"),))).problems
    assert "write -p 'lr=[adam, sgd]' for the values" in str(problems[0])


def test_a_setting_is_read_as_yaml() -> None:
    settings = (("train.resources.gpus", "2"), ("train.parameters.lr", "[1e-6, 2]"), ("train.retry.max", "3"))
    train = load_config(TEXT, overrides=Overrides(settings=settings)).train
    assert (train.resources.gpus, train.resources.cpus, train.policy.retry.max) == (2, 1.0, 3)
    assert train.parameters == (Parameter("lr", ("1e-6", "2")),)


def test_a_setting_and_a_parameter_of_the_command_line_name_a_nested_parameter() -> None:
    text = TEXT.replace("{lr: [0.1, 0.2]}", "{lr: 1, optimizer.lr: 2, optimizer.sgd.momentum: {values: [1, 2]}}")
    settings = (("train.parameters.optimizer.lr", "3"), ("train.parameters.optimizer.sgd.momentum.values", "[4, 5]"))
    parameters = load_config(text, overrides=Overrides((("lr", "6"),), settings)).train.parameters
    assert [(parameter.name, parameter.values) for parameter in parameters] == [
        ("lr", ("6",)),
        ("optimizer.lr", ("3",)),
        ("optimizer.sgd.momentum", ("4", "5")),
    ]


def test_a_whole_section_can_be_set() -> None:
    settings = (("train.framework", "tensorflow"), ("train.tensorflow", "{distributed: {worker: 2, ps: 1}}"))
    found = load_config(TEXT, overrides=Overrides(settings=settings)).train.tensorflow
    assert found is not None
    assert found.distributed is not None
    assert (found.distributed.workers, found.distributed.ps) == (2, 1)


def test_a_setting_replaces_false_with_a_section() -> None:
    text = TEXT + "  framework: tensorflow\n  tensorflow: {distributed: false}\n"
    found = load_config(
        text, overrides=Overrides(settings=(("train.tensorflow.distributed.worker", "2"),))
    ).train.tensorflow
    assert found is not None
    assert found.distributed is not None


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        (("train.resources.gpuss", "2"), 'train.resources.gpuss: unknown key; did you mean "gpus"?'),
        (
            ("train.resources.gpus", "two"),
            'train.resources.gpus: must be a whole number, not "two"; for example `gpus: 1`',
        ),
        (("train.run.x", "y"), "train.run: has no keys in riseml.yml: it is a single value; set the whole value"),
        (("train.parameters.lr.log", "y"), "train.parameters.lr: has no keys in riseml.yml: it is a list; set"),
        (("train..gpus", "2"), ' "train..gpus" is not a path of keys; write it like train.resources.gpus=2'),
        (
            ("train.env", "[a"),
            "train.env: the [ opened here is never closed; add the ], or put the text in quotes",
        ),
        (("train.env", ""), 'train.env: has no value; for example `env: {TF_CPP_MIN_LOG_LEVEL: "2"}`'),
        (("train.env", "!x y"), 'train.env: YAML tags are not supported: "!x"; remove the tag'),
    ],
)
def test_a_wrong_setting_names_the_option(setting: tuple[str, str], expected: str) -> None:
    (told,) = _told(setting=setting)
    where = f"--set {setting[0]}={setting[1]}:1:1"
    assert told.startswith(f"{where}:{expected}" if expected.startswith(" ") else f"{where} {expected}")


def test_a_wrong_parameter_names_the_option() -> None:
    (told,) = _told(parameter=("a b", "1"))
    assert told.startswith('-p a b=1:1:1 train.parameters."a b": "a b" is not a parameter name')


def test_a_parameter_that_the_file_lacks_and_nothing_uses_is_refused() -> None:
    text = "project: x\ntrain:\n  image: a\n  run: b {{lr}} $EPOCHS\n  parameters: {lr: 0.1, units: 3}\n"
    for name, hint in (
        ("lrr", 'did you mean "lr"?'),
        ("zzz", "there is lr, units; add it to train.parameters, if the code reads ZZZ from its environment"),
    ):
        found = check_config(text, overrides=Overrides(parameters=((name, "1"),)))
        assert found.spec is None
        assert str(found.problems[-1]) == (
            f'-p {name}=1:1:1 train.parameters.{name}: the file has no parameter "{name}", '
            f"and no line of `run` uses it; {hint}"
        )
    for used in ("lr", "epochs", "units"):
        assert check_config(text, overrides=Overrides(parameters=((used, "1"),))).spec is not None


def test_problems_of_options_come_after_those_of_the_file() -> None:
    overrides = Overrides(settings=(("train.resources.gpus", "x"),))
    found = check_config(TEXT + "  zzz: 1\n", overrides=overrides).problems
    assert [problem.file for problem in found] == ["riseml.yml", "--set train.resources.gpus=x"]


def test_a_very_deep_path_is_refused() -> None:
    deep = ".".join("a" * 2000)
    (problem,) = check_config(TEXT, overrides=Overrides(settings=((deep, "1"),))).problems
    assert problem.problem.endswith("is not a path of keys")
    assert len(problem.file) < 200
