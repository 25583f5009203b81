"""A value arrives as one piece of text, whatever it contains: checked by a real shell."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.base.errors import UsageError
from riseml.planning.template import check_values, fill_placeholders

values = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)


def run(line: str) -> str:
    """What a shell makes of the line."""
    done = subprocess.run(["/bin/sh", "-ec", line], capture_output=True, check=True)
    return done.stdout.decode("utf-8")


@given(values)
@pytest.mark.parametrize(
    "line", ["printf %s {{v}}", 'printf %s "{{ v }}"', "printf %s '{{v}}'", "printf %s a\"b\"''{{v}}"]
)
def test_every_value_arrives_as_it_is(line: str, value: str) -> None:
    prefix = "ab" if line.endswith("''{{v}}") else ""
    assert run(fill_placeholders(line, {"v": value})) == prefix + value


@pytest.mark.parametrize(
    "line",
    [
        "echo $(echo {{v}})",
        "echo `echo {{v}}`",
        "cat <<X\n{{v}}\nX",
        "echo \\{{v}}",
        "echo $'{{v}}'",
        "true # {{v}}",
        # The end of the nested code is not certain.
        "cat <<X\n\\\nX\n{{v}}\nX",
        "cat <<X\n$(echo a\nX\n{{v}})\nX",
        "cat <<X '\nX\n{{v}}'\nX",
        "cat <<X <<Y\nX\n{{v}}\nY",
        "cat <<X\nXY\n{{v}}\nX",
        "cat <<'X'\n X\n{{v}}\nX",
        "echo $(case a in a) echo {{v}};; esac)",
        'echo "$(case a in a) echo {{v}};; esac)"',
        "echo a\\ #'\n{{v}}'",
        "echo ${A:-{{v}}}",
        "echo ${A:-'}'{{v}}}",
        "echo $((1 + {{v}}))",
        "echo $(echo a\necho {{v}})",
    ],
)
def test_nested_shell_code_takes_harmless_values_only(line: str) -> None:
    assert "0.01" in fill_placeholders(line, {"v": "0.01"})
    with pytest.raises(UsageError, match="nested shell code"):
        fill_placeholders(line, {"v": "a; rm -rf x"})


CERTAIN = {
    "# it's {\nprintf %s {{v}}": "",
    ":;(:)#it's\nprintf %s {{v}}": "",
    'A=x; printf "${A}%s" {{v}}': "x",
    'A=x; printf %s "${A}{{v}}"': "x",
    "printf %s%s $(echo 4 | cat) {{v}}": "4",
    'printf %s "$(echo 4)" # "\nprintf %s \'{{v}}\'': "4",
    "cat <<'X'\nit's $(\\\nX\nprintf %s {{v}}": "it's $(\\\n",
    'cat <<-X | cat\na # $A\n\tX\nprintf %s "{{v}}"': "a # \n",
    'cat <<"X" >&2; printf %s a\nX X\nX\nprintf %s {{v}}': "a",
}


@pytest.mark.parametrize("value", ["a b", "'; id; '", '"; id; "', "$(id)", "`id`", "\\", "a\nX\nid"])
@pytest.mark.parametrize("line", CERTAIN)
def test_after_nested_code_that_is_certainly_over_every_value_arrives(line: str, value: str) -> None:
    assert run(fill_placeholders(line, {"v": value})) == CERTAIN[line] + value


def test_values_are_refused_before_anything_starts() -> None:
    check_values(["run {{v}}", "echo $(echo {{w}} {{v}})"], {"v": ["1", "2"]})
    with pytest.raises(UsageError, match=r"'a b' of \{\{v\}\} needs quoting"):
        check_values(["run {{v}}", "echo $(echo {{v}})"], {"v": ["1", "a b"]})


def test_what_has_no_value_stays() -> None:
    assert fill_placeholders("a {{ x }} {{y}}", {"y": "1"}) == "a {{ x }} 1"


CONTEXTS = {
    "run {{v}}": "run 'a b'",
    "run --x={{v}} y": "run --x='a b' y",
    'run "{{v}}"': 'run "a b"',
    "run '{{v}}'": "run 'a b'",
    'run "it\'s {{v}}"': 'run "it\'s a b"',
    "run 'say \"{{v}}\"'": "run 'say \"a b\"'",
    'run "" {{v}}': "run \"\" 'a b'",
    "run \\' {{v}}": "run \\' 'a b'",
    'run "\\"{{v}}"': 'run "\\"a b"',
    "run a#{{v}}": "run a#'a b'",
    "run {{v}}; run '{{v}}'": "run 'a b'; run 'a b'",
    "run {{ v }}{{v}}": "run 'a b''a b'",
    "run\n{{v}}\n'{{v}}'": "run\n'a b'\n'a b'",
    "$RUN {{v}} > {{v}}": "$RUN 'a b' > 'a b'",
}


@pytest.mark.parametrize("line", CONTEXTS)
def test_each_place_has_its_quoting(line: str) -> None:
    assert fill_placeholders(line, {"v": "a b"}) == CONTEXTS[line]


EVIL = ["$(id)", "`id`", "a;id", "a&&id", "'; id; '", '"; id; "', "\\", "\n id", "*", "~", "-rf", "", "$HOME", "{{v}}"]


@pytest.mark.parametrize("value", EVIL)
@pytest.mark.parametrize("line", ["printf %s {{v}}", 'printf %s "{{v}}"', "printf %s '{{v}}'"])
def test_no_value_becomes_shell_code(line: str, value: str) -> None:
    assert run(fill_placeholders(line.replace("%s", "'%s'") if value == "-rf" else line, {"v": value})) == value


def test_no_command_line_carries_a_nul() -> None:
    with pytest.raises(UsageError, match="NUL"):
        fill_placeholders("run {{v}}", {"v": "a\0b"})


def test_the_hint_names_the_variable() -> None:
    with pytest.raises(UsageError) as refusal:
        fill_placeholders("run $(echo {{learning-rate}})", {"learning-rate": "a b"})
    assert refusal.value.hint == "read it from the environment there: $LEARNING_RATE"
