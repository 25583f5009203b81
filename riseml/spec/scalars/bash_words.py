"""What bash reads in another way than sh: words of a script with their offsets. Pure.

A scanner of quotes, comments, here-documents and substitutions, and not a parser: it finds what dash and the sh of
busybox refuse or read otherwise, and leaves alone what stands in quotes, such as a program for `python -c`.
"""

from __future__ import annotations

import re

from riseml.base.records import dataclass
from riseml.spec.scalars.placeholders import find_placeholders

_LISTED = 4  # words that a sentence names


@dataclass(frozen=True, slots=True)
class BashWord:
    """One word, and what sh makes of it."""

    offset: int  # characters before it
    text: str
    meaning: str  # what sh does with it
    instead: str  # what to write for sh


_UNKNOWN = "looks for a command of this name"
_COMMANDS = {
    "[[": (_UNKNOWN, "write `[ ... ]`"),
    "source": (_UNKNOWN, "write `. ./FILE`"),
    "function": (_UNKNOWN, "write `NAME() { ...; }`"),
    "declare": (_UNKNOWN, "assign without it"),
    "typeset": (_UNKNOWN, "assign without it"),
    "let": (_UNKNOWN, "write `NAME=$((...))`"),
    "shopt": (_UNKNOWN, "remove it"),
    "pushd": (_UNKNOWN, "use `cd` in `( ... )`"),
    "popd": (_UNKNOWN, "use `cd` in `( ... )`"),
    "mapfile": (_UNKNOWN, "use `while read -r`"),
    "readarray": (_UNKNOWN, "use `while read -r`"),
    "select": (_UNKNOWN, "use `read`"),
    "coproc": (_UNKNOWN, "use `&` and a file"),
    "disown": (_UNKNOWN, "use `nohup`"),
    "builtin": (_UNKNOWN, "write the command alone"),
    "caller": (_UNKNOWN, "remove it"),
    "compgen": (_UNKNOWN, "use `ls` or `command -v`"),
    "dirs": (_UNKNOWN, "use `pwd`"),
    "enable": (_UNKNOWN, "remove it"),
}
_NUMBER = "ends with an error: it takes no negative numbers"
_TEST = ("ends with an error about the operator", "write `=`, or `grep -E` or `case` for a pattern")
_SIGNAL = ("ends with an error: it has no such signal", "use the trap `EXIT`, and names of signals without SIG")
_ARGUMENTS: dict[str, tuple[re.Pattern[str], str, str]] = {
    "set": (
        re.compile("pipefail|errtrace|functrace|[-+][a-zA-Z]*[ET][a-zA-Z]*"),
        "ends with an error, or ignores it",
        "check each command of a pipe by itself; traps are those of the shell",
    ),
    ".": (re.compile("[^-/~\0$][^/\0$]*"), "looks in PATH alone", "write `. ./FILE`"),
    "exec": (re.compile("-[acl]+|\\{\\w+\\}"), _UNKNOWN, "write the command alone, and descriptors as numbers"),
    "exit": (re.compile("-\\d+"), _NUMBER, "write a number from 0 to 255"),
    "kill": (re.compile("-?SIG[A-Z]+\\d?"), "ends with an error", "write the name without SIG"),
    "local": (re.compile("-[a-zA-Z]+"), "ends with an error", "assign without the option"),
    "readonly": (re.compile("-[aAfix]+"), "ends with an error", "assign without the option"),
    "return": (re.compile("-\\d+"), _NUMBER, "write a number from 0 to 255"),
    "type": (re.compile("-[aftpP]+"), "looks for a command of this name", "use `command -v`"),
    "unset": (re.compile(r"\w+\[.*"), "ends with an error", "set the words again"),
    "echo": (re.compile("-[nE]*e[neE]*"), "prints the option, too", "use `printf`"),
    "read": (re.compile("-[a-z]*[adnNstu].*"), "ends with an error", "use `read -r`"),
    "printf": (re.compile("-v"), "ends with an error", "write `NAME=$(printf ...)`"),
    "ulimit": (re.compile("-[a-zA-Z]*[biekquxPRT]"), "ends with an error", "remove it"),
    "wait": (re.compile("-n"), "ends with an error", "wait for each process"),
    "export": (re.compile("-[a-z]*f[a-z]*"), "ends with an error", "put the function into a file"),
    "trap": (re.compile("ERR|DEBUG|RETURN|SIG[A-Z]+\\d?"), *_SIGNAL),
    "[": (re.compile("==|=~|-[vR]"), *_TEST),
    "test": (re.compile("==|=~|-[vR]"), *_TEST),
}
"""Arguments of commands that both shells have."""

_END_AT_OPERANDS = frozenset({"echo", "exec", "printf", "type"})
"""Commands whose options end at the first operand: the `-l` of `exec bash -l` is an option of bash."""

_OPERANDS = frozenset({".", "[", "exit", "return", "test", "trap", "unset"})
"""Commands whose arguments above are no options: they mean the same behind `--`, as in `trap -- ... ERR`."""

_BEFORE_UNARY = re.compile(r"(?:\[|test|!|-[ao]|\\\()[ \t]+\Z")  # what an operator with one operand stands behind
_LONGEST_BEFORE = 20  # characters that are searched for it
_BEFORE_COMMANDS = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "time"})
_SYNTAX_ERROR = "ends with a syntax error"
_OPERATORS = (
    ("<<<", _SYNTAX_ERROR, "use a pipe: `echo ... |`"),
    ("&>>", "runs the command in the background, and the file stays empty", "write `>>FILE 2>&1`"),
    ("&>", "runs the command in the background, and the file stays empty", "write `>FILE 2>&1`"),
    ("|&", _SYNTAX_ERROR, "write `2>&1 |`"),
    ("<(", _SYNTAX_ERROR, "write to a file first"),
    (">(", _SYNTAX_ERROR, "use a pipe"),
    (";;&", _SYNTAX_ERROR, "write the commands again"),
    (";&", _SYNTAX_ERROR, "write the commands again"),
)
_PLAIN_OPERATOR = re.compile(r"&&|\|\||;;|[;&|]")
_REST_OF_PATTERN = re.compile(r"\|[^\s;&|()]*\)")  # rest of a pattern of `case`
_REDIRECTION = re.compile(r"<>|<&|>&|>>|>\||[<>]")
_TO_FILE_AND_ERRORS = re.compile(r">&[ \t]*(?![\d$\s-])")
_HEREDOC = re.compile(r"<<(-?)[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?([\w.+-]+))")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]\s]*\])?(\+?)=")
_BRACES = (
    (re.compile(r"\{[\w-]+\.\.[\w-]+(?:\.\.[\w-]+)?\}"), "keeps it as one word", "write `$(seq FIRST LAST)`"),
    (re.compile(r"\{[\w./@%^*?-]*(?:,[\w./@%^*?-]*)+\}"), "keeps it as one word", "write the words out"),
)
_EXPANSION = re.compile(
    r"\$\{(?:!\w+|#?[A-Za-z_]\w*\[|(?:\w+|[@*])(?:\^|,|/|@[A-Za-z]\}|:(?![-=?+]|\})))"
    r"|\$\{?(?:RANDOM|SRANDOM|SECONDS|PIPESTATUS|EPOCH(?:SECONDS|REALTIME)|BASH(?:PID|_\w+)?|FUNCNAME|EUID|UID"
    r"|OSTYPE|MACHTYPE|HOSTTYPE)\b"
)
_READ_FILE = re.compile(  # with a command behind it, `<` is a plain redirection
    r"\$\(\s*<(?![<(&])(?=\s*(?:\"[^\"]*\"|'[^']*'|\\.|\$\([^()]*\)|[^\s()\"'\\;|&<>])+\s*\))"
)
_INCREMENT = re.compile(r"\w(?:\+\+|--)(?!\w)|(?<![\w)])(?:\+\+|--)[A-Za-z_]|\*\*")
_END_OF_WORD = frozenset(" \t\n;&|()<>")
_DEEPEST = 50  # levels of `$( $( ...`; a script with more is not searched
_LONGEST_SUM = 4096  # characters between `((` and `))`


def find_bash_words(script: str) -> tuple[BashWord, ...]:
    """Return the words of a script that sh reads in another way than bash, in their order."""
    return tuple(sorted(_Scanner(script).scan(), key=lambda word: word.offset))


def has_pipe(script: str) -> bool:
    """Return True when a script has a pipe, whose exit code in sh is that of its last command."""
    scanner = _Scanner(script)
    list(scanner.scan())
    return scanner.has_pipe


def may_differ_in_bash(script: str) -> bool:
    """Return True when bash with `pipefail` may give a script another meaning or another exit code than sh does."""
    return has_pipe(script) or bool(find_bash_words(script))


def describe_for_sh(lines: tuple[str, ...]) -> str:
    """Return what a job without bash prints about its lines; empty when sh reads them as bash does."""
    words = list(dict.fromkeys(word.text for line in lines for word in find_bash_words(line)))
    listed = ", ".join(f"`{word}`" for word in words[:_LISTED]) + (", ..." if words[_LISTED:] else "")
    parts = [f"it reads {listed} in another way than bash"] if words else []
    if any(map(has_pipe, lines)):
        parts.append("the exit code of a pipe is that of its last command")
    return f"riseml: there is no bash, so sh runs these lines: {', and '.join(parts)}" if parts else ""


class _Scanner:
    """Reads a script once. `at` is the offset of the next character."""

    def __init__(self, script: str) -> None:
        text = script
        for _, start, end in find_placeholders(script):  # they are filled in before a shell reads them
            text = text[:start] + "x" * (end - start) + text[end:]
        self.text = text
        self.at = 0
        self.depth = 0
        self.has_pipe = False
        self.words: list[BashWord] = []
        self.heredocs: list[tuple[str, bool]] = []  # the last line of each, and whether it may have tabs before it
        self.command = ""  # the first word of the command; empty: the next word is it

    def scan(self) -> list[BashWord]:
        while self.at < len(self.text):
            self._scan_commands("")
            self.at += 1  # a `)` of `case`
        return self.words

    def _note(self, offset: int, text: str, meaning: str, instead: str) -> None:
        self.words.append(BashWord(offset, text, meaning, instead))

    def _scan_inner(self, closer: str) -> None:
        """Read the commands of a substitution or subshell up to its end."""
        outer, self.command = self.command, ""
        self.depth += 1
        if self.depth > _DEEPEST:
            self.at = len(self.text)
        self._scan_commands(closer)
        self.at += 1
        self.depth -= 1
        self.command = outer

    def _scan_commands(self, closer: str) -> None:
        """Read up to `closer`, a character that is not read, or to the end."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == closer:
                return
            if char in " \t":
                self.at += 1
            elif char == "\n":
                self.at += 1
                self._skip_heredocs()
                self.command = ""
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char in "()":
                self._read_bracket(char)
            elif char in ";&|<>":
                self._read_operator()
            else:
                self._read_command_word(closer)

    def _skip_heredocs(self) -> None:
        for last, strips in self.heredocs:
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line, self.at = self.text[self.at : end], end + 1
                if (line.lstrip("\t") if strips else line) == last:
                    break
        self.heredocs.clear()

    def _read_bracket(self, char: str) -> None:
        start = self.at
        if char == ")":  # after a pattern of `case`, or `NAME()`
            self.at += 1
            self.command = ""
        elif self.command == "for" and self.text.startswith("((", start):
            self._note(start, "((", _SYNTAX_ERROR, "write `for NAME in $(seq FIRST LAST)`")
            self.at = max(self._find_sum_end(start + 2), start + 2)
        elif self.command:
            self.at += 1
        elif self.text.startswith("((", start) and (end := self._find_sum_end(start + 2)) > 0:
            self._note(start, "((", "reads two subshells", "write `[ ... ]` or `NAME=$((...))`")
            self.at = end
            self.command = "(("
        else:
            self.at += 1
            self._scan_inner(")")
            self.command = "("

    def _read_operator(self) -> None:
        start = self.at
        for text, meaning, instead in _OPERATORS:
            if self.text.startswith(text, start):
                self._note(start, text, meaning, instead)
                self.at += len(text)
                self.has_pipe |= text == "|&"
                if text in ("<(", ">("):
                    self._scan_inner(")")
                elif text[0] in "|;":
                    self.command = ""
                else:
                    self._skip_target()
                return
        plain = _PLAIN_OPERATOR.match(self.text, start)
        if plain is not None:
            in_pattern = self.depth == 0 and _REST_OF_PATTERN.match(self.text, start) is not None
            self.has_pipe |= plain[0] == "|" and not in_pattern
            self.at = plain.end()
            self.command = ""
            return
        heredoc = _HEREDOC.match(self.text, start)
        if heredoc is not None:
            self.heredocs.append((heredoc[2] or heredoc[3] or heredoc[4], bool(heredoc[1])))
            self.at = heredoc.end()
            return
        if _TO_FILE_AND_ERRORS.match(self.text, start):
            self._note(start, ">&", "ends with an error about the descriptor", "write `>FILE 2>&1`")
        redirection = _REDIRECTION.match(self.text, start)
        self.at = start + 1 if redirection is None else redirection.end()
        self._skip_target()

    def _skip_target(self) -> None:
        """Read the file name of a redirection."""
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        if self.at < len(self.text) and self.text[self.at] not in _END_OF_WORD:
            self._read_word("")

    def _read_command_word(self, closer: str) -> None:
        start = self.at
        word = self._read_word(closer)
        assignment = None if self.command else _ASSIGNMENT.match(word)
        if assignment is not None:
            self._read_assignment(start, assignment, word)
        elif not self.command:
            self._note_braces(start, word)
            self._begin_command(start, word, closer)
        else:
            self._note_braces(start, word)
            self._read_argument(start, word)

    def _read_argument(self, start: int, word: str) -> None:
        """Note an argument that only bash knows."""
        pattern, *sentences = _ARGUMENTS.get(self.command, (None, "", ""))
        if isinstance(pattern, re.Pattern) and pattern.fullmatch(word) and not self._is_compared(start, word):
            command = f"echo {word}" if self.command == "echo" else word
            self._note(start, command, str(sentences[0]), str(sentences[1]))
        elif self._ends_options(word):
            self.command = "?"

    def _is_compared(self, start: int, word: str) -> bool:
        """Return True for the `-v` of `[ "$1" = -v ]`, which is a text and no operator."""
        before = max(0, start - _LONGEST_BEFORE)
        is_operator = not word.startswith("-") or _BEFORE_UNARY.search(self.text, before, start) is not None
        return self.command in ("[", "test") and not is_operator

    def _ends_options(self, word: str) -> bool:
        if word.startswith("-"):
            return word == "--" and self.command not in _OPERANDS
        is_descriptor = word.isdigit() and self.text.startswith(("<", ">"), self.at)  # the `2` of `2>&1`
        return self.command in _END_AT_OPERANDS and not is_descriptor

    def _read_assignment(self, start: int, assignment: re.Match[str], word: str) -> None:
        name = assignment[0]
        if word == name and self.text.startswith("(", self.at):
            self._note(start, f"{name}(", "has no arrays: " + _SYNTAX_ERROR, "use words in `set -- ...`, or a file")
            self.at += 1
            self._skip_list()
        elif assignment[1] or "[" in name:
            self._note(start, name, _UNKNOWN, "write the whole value: `NAME=$NAME...`")

    def _skip_list(self) -> None:
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] in _END_OF_WORD:
                self.at += 1
            else:
                self._read_word(")")
        self.at += 1

    def _begin_command(self, start: int, word: str, closer: str) -> None:
        after = self.text[self.at :].lstrip(" \t")[:1] if word in _COMMANDS else ""
        if word in _BEFORE_COMMANDS:
            return
        self.command = word or "?"
        if word not in _COMMANDS or (after in (")", "|") and after != closer and word != "[["):
            return  # a pattern of `case`
        self._note(start, word, *_COMMANDS[word])
        if word == "[[":
            self._skip_test()

    def _skip_test(self) -> None:
        """Read up to `]]`: operators inside mean something else."""
        while self.at < len(self.text) and self.text[self.at] != "\n":
            if self.text[self.at] in _END_OF_WORD:
                self.at += 1
            elif self._read_word("") == "]]":
                return

    def _note_braces(self, start: int, word: str) -> None:
        for pattern, meaning, instead in _BRACES:
            match = pattern.search(word)
            if match is not None:
                self._note(start + match.start(), match[0], meaning, instead)
                return

    def _read_word(self, closer: str) -> str:
        """Read one word; return it with a NUL for each character that is in quotes or comes from a substitution."""
        start = self.at
        plain: list[str] = []
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in _END_OF_WORD or char == closer:
                break
            begin = self.at
            if char in "\\'\"`$":
                self._read_quoted(char)
            else:
                self.at += 1
            size = min(self.at, len(self.text)) - begin
            plain.append(char if size == 1 and char not in "\\'\"`" else "\0" * size)
        if self.at == start:
            self.at += 1
        return "".join(plain)

    def _read_quoted(self, char: str) -> None:
        if char == "\\":
            self.at += 2
        elif char == "'":
            end = self.text.find("'", self.at + 1)
            self.at = len(self.text) if end < 0 else end + 1
        elif char == '"':
            self._read_double_quotes()
        elif char == "`":
            self.at += 1
            self._scan_inner("`")
        elif self.text.startswith("$'", self.at):
            self._note(self.at, "$'", "keeps the dollar sign and the backslashes", "use `printf`")
            self.at += 1
            self._read_quoted("'")
        else:
            self._read_dollar()

    def _read_double_quotes(self) -> None:
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != '"':
            char = self.text[self.at]
            if char == "\\":
                self.at += 2
            elif char == "$":
                self._read_dollar()
            elif char == "`":
                self._read_quoted(char)
            else:
                self.at += 1
        self.at += 1

    def _read_dollar(self) -> None:
        start = self.at
        expansion = _EXPANSION.match(self.text, start)
        if expansion is not None:
            meaning = "ends with `Bad substitution`" if expansion[0].startswith("${") else "has no such variable"
            self._note(start, expansion[0], meaning, "use `cut`, `sed` or `tr`, or a variable of your own")
        if self.text.startswith("$((", start) and (end := self._find_sum_end(start + 3)) > 0:
            match = _INCREMENT.search(self.text, start, end)
            if match is not None:
                self._note(
                    match.start(), match[0], "ends with an error, or counts nothing", "write `NAME=$((NAME + 1))`"
                )
            self.at = end
        elif self.text.startswith("$(", start):
            if (reading := _READ_FILE.match(self.text, start)) is not None:
                self._note(start, reading[0], "reads nothing", "write `$(cat FILE)`")
            self.at += 2
            self._scan_inner(")")
        elif self.text.startswith("${", start):
            self.at += 2
            self._skip_braces()
        else:
            self.at += 1

    def _skip_braces(self) -> None:
        """Read up to the end of `${...}`."""
        while self.at < len(self.text) and self.text[self.at] != "}":
            char = self.text[self.at]
            if char in "\\'\"`$":
                self._read_nested(char)
            else:
                self.at += 1
        self.at += 1

    def _read_nested(self, char: str) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.at = len(self.text)
        elif char == "'":
            self.at += 1  # an apostrophe in `"${x:-it's}"` is not a quote
        else:
            self._read_quoted(char)
        self.depth -= 1

    def _find_sum_end(self, start: int) -> int:
        """Return the offset after the `))` that ends a sum; -1 when brackets end apart, as those of subshells do."""
        level = 2
        for at in range(start, min(len(self.text), start + _LONGEST_SUM)):
            level += {"(": 1, ")": -1}.get(self.text[at], 0)
            if level == 1 and not self.text.startswith("))", at):
                return -1
            if level == 0:
                return at + 1
        return -1
