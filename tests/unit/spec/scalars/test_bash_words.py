"""Words that sh reads in another way than bash: what is found, and above all what is not."""

from __future__ import annotations

import random
import subprocess
import time

import pytest

from riseml.spec.config.loader import check_config
from riseml.spec.scalars.bash_words import describe_for_sh, find_bash_words, has_pipe, may_differ_in_bash
from riseml.spec.yaml.problems import Severity

FOUND = {
    "python3 train.py &> $OUTPUT_DIR/train.log": ["&>"],
    "python3 train.py &>> log": ["&>>"],
    "python3 train.py >&log": [">&"],
    "python3 train.py |& tee log": ["|&"],
    "if [[ 1 == 1 ]]; then echo a; fi": ["[["],
    "[[ a =~ ^(a|b)$ && 1 < 2 ]] && echo source": ["[["],
    "for i in {1..3}; do echo $i; done": ["{1..3}"],
    "mkdir -p runs/{a,b}/c": ["{a,b}"],
    "source venv/bin/activate": ["source"],
    "VAR=1 source x": ["source"],
    "if source x; then :; fi": ["source"],
    "echo x && source y": ["source"],
    'echo `source x` "$(source y)"': ["source", "source"],
    "set -euo pipefail": ["pipefail"],
    "cat <<< x": ["<<<"],
    'a=(1 2)\necho ${a[0]} "${#a[@]}"': ["a=(", "${a[", "${#a["],
    "x+=1": ["x+="],
    "function f { echo; }": ["function"],
    "declare -a x": ["declare"],
    "((i++))": ["(("],
    "x=$(( i++ ))": ["i++"],
    "echo -e 'a\\n'": ["echo -e"],
    "echo $'a\\n'": ["$'"],
    '[ "$a" == b ]': ["=="],
    "echo ${x:1:2} ${x/a/b} ${x^^} ${!x}": ["${x:", "${x/", "${x^", "${!x"],
    "diff <(a) <(source b)": ["<(", "<(", "source"],
    "exec > >(tee log) 2>&1": [">("],
    "cat <<EOF\nsource x\nEOF\nsource y": ["source"],
    "read -a words": ["-a"],
    "trap 'echo failed' ERR": ["ERR"],
    "echo $RANDOM": ["$RANDOM"],
    "for ((i = 0; i < 3; i++)); do echo $i; done": ["(("],
    'x=$(<file); echo "$(<"$f")"': ["$(<", "$(<"],
    "echo ${@:2} ${*:1:2}": ["${@:", "${*:"],
    "echo $SECONDS $UID ${EUID} $BASHPID $OSTYPE": ["$SECONDS", "$UID", "${EUID", "$BASHPID", "$OSTYPE"],
    "[ -v x ] || test -v y": ["-v", "-v"],
    "trap 'echo x' SIGTERM INT": ["SIGTERM"],
    "kill -SIGTERM $!; kill -s SIGINT 1": ["-SIGTERM", "SIGINT"],
    "f() { local -a x; }": ["-a"],
    "type -t ls; exec -a name ls": ["-t", "-a"],
    "set -Ee": ["-Ee"],
    "exec {log}>file": ["{log}"],
    ". activate && . ./other": ["activate"],
    "exit -1": ["-1"],
    "unset a[0]; ulimit -n 100; ulimit -u 10": ["a[0]", "-u"],
    "builtin cd; compgen -A x": ["builtin", "compgen"],
    "trap -- 'echo x' ERR; unset -- a[0]; exit -- -1": ["ERR", "a[0]", "-1"],
    "exec 2>&1 {log}>file": ["{log}"],
    "[ ! -v x ] || [ a -o -v x ] || [ -n x -a -R y ] || test \\( -v x \\)": ["-v", "-v", "-R", "-v"],
    "a=$(<\"$(find f)\"); b=$(<$(find f)); c=$(<'a b'); d=$(< a\\ b )": ["$(<"] * 4,
}

ALIKE = [
    'python -c "x = [[1]]; source = {1..3}; a=(1, 2)"',
    "python -c 'import os; print(\"&>\", {1, 2}, x[-1]) # [[ <<<'",
    "python t.py --lr {{lr}} {{ layers }} --text '{a,b}'",
    '[ a = b -o -n c ] && . ~/x && . "$f" && . /etc/x; kill -TERM 1; trap : TERM; local_x=1; exit 1; set -eux',
    "cat <file; x=$(cat <file); echo $((1 - 1)) $HOSTNAME; timeout 3 x; for a in 1 2; do (ls); done; ulimit -n 1024",
    "# source x [[ {1..3}\necho a#b source [[",
    "cat <<'EOF' >x.py\nsource = {1: [[2]]}\nx += 1\nEOF\npython x.py",
    "cat <<-EOF\n\tsource x\n\tEOF\necho done",
    "echo $((1 << 2)) $((a - 1)) $(( (1 + 2) * 3 ))",
    "((cd a; ls); ls) || (cd b && ls)",
    'f() { echo "$1"; }; f source',
    "case $x in source) echo;; a|b) echo;; [[]) echo;; esac",
    "echo ${x:-1} ${x:=2} ${x:+3} ${x:?4} ${x%%.*} ${x##*/} ${#x} ${x}",
    "cmd >log 2>&1 <in 3>&- >& 2 >>more",
    "awk '{print $1,$2}' file | sort -k1,1 -t, | head",
    "find . -name '*.pt' -exec rm {} \\;",
    "git checkout stash@{0} HEAD^ HEAD~1",
    '[ "$a" = b ] && [ $n -gt 3 ] || exit 1',
    "export X=1 Y='a b'; X={a,b} env",
    'read -r line < file; while read -r x; do echo "$x"; done < file',
    "echo it\\'s source; printf '%s\\n' \"it's [[\"",
    "torchrun --nproc_per_node=2 train.py model.layers=[1,2] data={{data_dir}}/x",
    "echo -n a; set -eu; trap 'exit 1' TERM EXIT",
    "sh -c 'source x; [[ a ]]'",
    "time python train.py & wait",
    'exec python -c "print(1)"',
    "exec bash -l",
    "exec 2>&1 bash -l; exec -- bash -l",
    "type ls -a",
    "echo a -e; printf '%s\\n' -v",
    '[ "$1" = -v ]',
    '[ "$1" = -R ] || test "$1" != -v',
    "set -- -E x",
    "read -- line; kill -- -SIGTERM; printf -- -v",
    "$(<FILE wc -c)",
    "$(<FILE; wc -c) $(<FILE|wc -c)",
]


@pytest.mark.parametrize(("script", "words"), FOUND.items())
def test_words_of_bash_are_found_where_they_stand(script: str, words: list[str]) -> None:
    found = find_bash_words(script)
    assert [word.text for word in found] == words
    for word in found:
        assert script.startswith(word.text.split()[-1], word.offset)
        assert word.meaning
        assert word.instead
    assert may_differ_in_bash(script)


@pytest.mark.parametrize("script", ALIKE)
def test_what_both_shells_read_alike_has_no_word(script: str) -> None:
    assert find_bash_words(script) == ()


@pytest.mark.parametrize("script", [script for script in ALIKE if "{{" not in script and "cd a" not in script])
def test_sh_accepts_what_has_no_word(script: str) -> None:
    """`-n` reads without running."""
    subprocess.run(["/bin/sh", "-nc", script], check=True, capture_output=True)


def test_pipes_are_found_outside_of_quotes() -> None:
    assert [has_pipe(script) for script in ("a | b", "a || b", "echo 'a | b'", "$(a | b)", "a |& b")] == [
        *(True, False, False, True, True)
    ]


@pytest.mark.parametrize(
    "text", ["((", "$((", "[[ ", "${", "`", "$(", "{", "'", '"', "<<", "a=(", "{a,", "\\", '$(<"', "$(<$(", "[ -v "]
)
def test_no_script_takes_long_or_ends_the_search_with_an_error(text: str) -> None:
    began = time.process_time()
    find_bash_words(text * 20_000)
    assert time.process_time() - began < 5


def test_no_random_script_ends_the_search_with_an_error() -> None:
    chance = random.Random(7)
    pieces = [*"(){}$;&|=#'\"`\\\n aE", "[[", "]]", "<<"]
    for _ in range(2_000):
        script = "".join(chance.choices(pieces, k=30))
        assert all(0 <= word.offset < len(script) for word in find_bash_words(script)), script


def test_a_job_without_bash_says_what_sh_reads_otherwise() -> None:
    assert describe_for_sh(("python t.py",)) == ""
    assert describe_for_sh(("[[ a ]]", "source x", "[[ b ]]")) == (
        "riseml: there is no bash, so sh runs these lines: it reads `[[`, `source` in another way than bash"
    )
    assert describe_for_sh(("a &> b | c",)).endswith(
        "it reads `&>` in another way than bash, and the exit code of a pipe is that of its last command"
    )


FILE = """\
project: x
train:
  image: a
  shell: {shell}
  install: source setup.sh
  run:
    - python3 train.py &> log
    - "if [[ 1 == 1 ]]; then source env.sh; fi"
    - |
      set -e
      for i in {{1..3}}; do
        echo [[
        [[ a ]]
      done
    - >-
      python -c "x = [[1]]"
      --range {{1..3}}
"""


def test_sh_that_was_chosen_has_a_warning_for_each_word_with_its_line_and_column() -> None:
    checked = check_config(FILE.format(shell="sh"))
    assert checked.spec is not None
    warnings = [one for one in checked.problems if one.severity is Severity.WARNING]
    assert [(one.line, one.column, one.path) for one in warnings] == [
        (5, 12, "train.install"),
        (7, 24, "train.run[0]"),
        (8, 11, "train.run[1]"),
        (8, 30, "train.run[1]"),
        (11, 16, "train.run[2]"),
        (13, 9, "train.run[2]"),
        (17, 15, "train.run[3]"),
    ]
    assert warnings[1].problem == (
        "sh reads `&>` in another way than bash: it runs the command in the background, and the file stays empty"
    )
    assert warnings[1].hint == "write `>FILE 2>&1`, or choose `shell: bash`"


@pytest.mark.parametrize("shell", ["auto", "bash"])
def test_bash_has_no_warning(shell: str) -> None:
    assert check_config(FILE.format(shell=shell)).problems == ()


def test_a_role_is_warned_by_its_own_shell() -> None:
    file = """\
project: x
train:
  image: a
  shell: bash
  run: "[[ a ]]"
  roles:
    one: {shell: sh, run: "[[ b ]]"}
    two: {run: "[[ c ]]"}
    three: {shell: sh}
"""
    assert [(one.line, one.path) for one in check_config(file).problems] == [(7, "train.roles.one.run")]


ERRORS = [
    "for ((;;)); do :; done",
    "echo ${@:2}",
    "[ -v x ]",
    "kill -SIGTERM 1",
    "f() { local -a x; }; f",
    "unset a[0]",
    "ulimit -u",
    "exit -1",
]


@pytest.mark.parametrize("script", ["cat <<< x", "a=(1 2)", "echo ${x^^}", "cat <(ls)", "echo a |& cat", *ERRORS])
def test_dash_refuses_what_is_said_to_end_with_an_error(script: str) -> None:
    assert subprocess.run(["dash", "-c", script], capture_output=True, check=False).returncode == 2
