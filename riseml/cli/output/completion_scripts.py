"""Scripts with which bash, zsh and fish complete `riseml`: commands and options from a table, IDs from the server.

The table is in the script, so that only a word that is an ID starts a process: `riseml` itself with the variable
_RISEML_NAMES, which `cli.entry` answers. Pure.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from riseml.base.records import dataclass


@dataclass(frozen=True, slots=True)
class CompletedCommand:
    """What a user can type after one command or group."""

    path: str  # `pool add`; empty for `riseml` itself
    commands: tuple[str, ...] = ()  # commands of a group
    options: tuple[str, ...] = ()  # `-f`, `--file`
    names: str = ""  # which IDs its argument may be: `running` or `all`; empty: it takes no ID
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # option -> its values; none: a file
    takes_path: bool = False  # its argument may be a file or a folder


_POSIX = """\
_riseml_words() { case "$1" in
@WORDS@  esac; }
_riseml_options() { case "$1" in
@OPTIONS@  esac; }
_riseml_names() { case "$1" in
@NAMES@  esac; }
_riseml_paths() { case "$1" in
@PATHS@  *) return 1 ;;
  esac; }
_riseml_values() { case "$1 $2" in
@VALUES@  *) return 1 ;;
  esac; }
# Print the words that fit; return 1 where a file fits.
_riseml_candidates() {
  local program="$1" current="$2" verb="" previous="" word found
  shift 2
  for word in "$@"; do
    case " $(_riseml_words "$verb") " in *" $word "*) verb="${verb:+$verb }$word" ;; esac
    previous="$word"
  done
  if word="$(_riseml_values "$verb" "$previous")"; then
    [ -n "$word" ] || return 1
    echo "$word"
    return 0
  fi
  case "$current" in -*) _riseml_options "$verb" && return 0 ;; esac
  found="$(
    _riseml_words "$verb"
    word="$(_riseml_names "$verb")"
    [ -z "$word" ] || _RISEML_NAMES="$word" "$program" "$current" 2>/dev/null
  )"
  if _riseml_paths "$verb" >/dev/null; then
    [ -n "$found" ] || return 1
    case " $found" in *[[:space:]]"$current"*) ;; *) return 1 ;; esac
  fi
  echo "$found"
}
"""

_BASH = """\
# Completion of riseml for bash, written by `riseml completion bash`.
@COMMON@_riseml() {
  local IFS=$' \\t\\n' found
  COMPREPLY=()
  if found="$(_riseml_candidates "$1" "$2" "${COMP_WORDS[@]:1:COMP_CWORD-1}")"; then
    COMPREPLY=($(compgen -W "$found" -- "$2"))
  else
    compopt -o default
  fi
}
complete -F _riseml riseml
"""

_ZSH = """\
#compdef riseml
# Completion of riseml for zsh, written by `riseml completion zsh`.
@COMMON@_riseml() {
  local found
  if found="$(_riseml_candidates "${words[1]}" "${words[CURRENT]}" "${(@)words[2,CURRENT-1]}")"; then
    compadd -- ${=found}
  else
    _files
  fi
}
if [ "${funcstack[1]}" = _riseml ]; then _riseml "$@"; else compdef _riseml riseml; fi
"""

_FISH = """\
# Completion of riseml for fish, written by `riseml completion fish`.
function __riseml_words; switch "$argv[1]"
@WORDS@end; end
function __riseml_options; switch "$argv[1]"
@OPTIONS@end; end
function __riseml_names; switch "$argv[1]"
@NAMES@end; end
function __riseml_paths; switch "$argv[1]"
@PATHS@case '*'; return 1
end; end
function __riseml_values; switch "$argv[1] $argv[2]"
@VALUES@case '*'; return 1
end; end
function __riseml_candidates
  set -l current (commandline -ct)
  set -l before (commandline -opc)
  set -l verb ''
  set -l previous ''
  for word in $before[2..-1]
    if contains -- $word (__riseml_words "$verb")
      set verb (string trim -- "$verb $word")
    end
    set previous $word
  end
  if set -l values (__riseml_values "$verb" "$previous")
    if test -n "$values"
      printf '%s\\n' $values
    else
      __fish_complete_path "$current"
    end
    return
  end
  if string match -q -- '-*' "$current"
    __riseml_options "$verb"
    return
  end
  set -l found (__riseml_words "$verb")
  set -l kind (__riseml_names "$verb")
  if test -n "$kind"
    set -a found (env _RISEML_NAMES=$kind $before[1] "$current" 2>/dev/null)
  end
  if __riseml_paths "$verb" >/dev/null
    if not set -q found[1]; or not string match -q -- "$current*" $found
      __fish_complete_path "$current"
      return
    end
  end
  set -q found[1]; and printf '%s\\n' $found
end
complete -c riseml -f -a '(__riseml_candidates)'
"""


def write_script(shell: str, commands: Sequence[CompletedCommand]) -> str:
    """Return the script for `bash`, `zsh` or `fish`."""
    if shell == "fish":
        return _fill(_FISH, commands, _case_of_fish)
    return {"bash": _BASH, "zsh": _ZSH}[shell].replace("@COMMON@", _fill(_POSIX, commands, _case_of_sh))


def _fill(template: str, commands: Sequence[CompletedCommand], case: Callable[[str, Sequence[str]], str]) -> str:
    rows: dict[str, list[tuple[str, Sequence[str]]]] = {
        "@WORDS@": [(command.path, command.commands) for command in commands if command.commands],
        "@OPTIONS@": [(command.path, command.options) for command in commands],
        "@NAMES@": [(command.path, (command.names,)) for command in commands if command.names],
        "@PATHS@": [(command.path, ()) for command in commands if command.takes_path],
        "@VALUES@": list(_yield_values(commands)),
    }
    for name, row in rows.items():
        template = template.replace(name, "".join(case(key, words) for key, words in row))
    return template


def _yield_values(commands: Sequence[CompletedCommand]) -> Iterator[tuple[str, Sequence[str]]]:
    for command in commands:
        yield from ((f"{command.path} {option}", values) for option, values in command.values.items())


def _case_of_sh(key: str, words: Sequence[str]) -> str:
    return f"  {shlex.quote(key)}) echo {' '.join(map(shlex.quote, words))} ;;\n"


def _case_of_fish(key: str, words: Sequence[str]) -> str:
    printed = f"printf '%s\\n' {' '.join(map(shlex.quote, words))}" if words else "true"
    return f"case {shlex.quote(key)}; {printed}\n"
