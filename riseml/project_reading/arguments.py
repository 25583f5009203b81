"""The arguments of a program, from the calls of argparse, click, typer, absl, fire, tyro or hydra in its code."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import replace

from riseml.base.records import dataclass
from riseml.project_reading.findings import Argument, ArgumentKind, CodePlace, CommandLine
from riseml.project_reading.syntax import SourceCode, find_keyword, format_literal
from riseml.spec.yaml.document import MappingNode, ScalarNode, parse_document

_FAVOURITES = ("train", "fit", "run", "main")  # the subcommand that trains
_FLAG_ACTIONS = frozenset({"store_true", "store_false", "store_const", "count", "version", "help", "append_const"})
_NUMBERS = frozenset({"int", "float"})
_ABSL = {
    **{"DEFINE_float": ArgumentKind.NUMBER, "DEFINE_integer": ArgumentKind.NUMBER, "DEFINE_int": ArgumentKind.NUMBER},
    **{"DEFINE_string": ArgumentKind.TEXT, "DEFINE_enum": ArgumentKind.TEXT},
    **{"DEFINE_bool": ArgumentKind.FLAG, "DEFINE_boolean": ArgumentKind.FLAG},
}
_DATACLASS_PARSERS = ("HfArgumentParser", "tyro.cli", "simple_parsing.parse", "ArgumentParser.parse")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_command_line(code: SourceCode, texts: Mapping[str, str]) -> CommandLine | None:
    """Return the arguments that a program reads; None when its code shows none.

    Args:
        code: of the program.
        texts: all files of the project, by path: hydra's configuration is one of them.
    """
    command = _read_hydra(code, texts)
    readers = (_read_typer, _read_click, _read_fire, _read_absl, _read_dataclass, _read_argparse)
    for reader in readers:
        command = command if command is not None else reader(code)
    return command


def _kind_of(value: object, type_name: str = "") -> ArgumentKind:
    if type_name in _NUMBERS or (isinstance(value, int | float) and not isinstance(value, bool)):
        return ArgumentKind.NUMBER
    if type_name == "bool" or isinstance(value, bool):
        return ArgumentKind.FLAG
    return ArgumentKind.TEXT


def _default_text(value: object) -> str | None:
    return None if value is ... or value is None or isinstance(value, bool) else format_literal(value)


@dataclass(frozen=True, slots=True)
class _Parsers:
    """The variables of a program that hold parsers and groups of arguments."""

    words: Mapping[str, str]  # of a subcommand's parser -> the subcommand
    groups: Mapping[str, str]  # of a group -> the variable of its parser
    exclusive: frozenset[str]  # of groups of which one argument is given at most

    @property
    def chosen(self) -> str:
        """The subcommand that trains; empty: there is none."""
        words = list(self.words.values())
        return next((word for word in _FAVOURITES if word in words), words[0] if words else "")

    def has_argument(self, variable: str) -> bool:
        """Return True for a variable whose arguments the chosen subcommand takes."""
        parser = self.groups.get(variable, variable)
        return variable not in self.exclusive and self.words.get(parser, self.chosen) == self.chosen


def _read_argparse(code: SourceCode) -> CommandLine | None:
    adding = [call for call in code.calls if _method(call) == "add_argument" and call.args]
    adding = [call for call in adding if isinstance(code.literal(call.args[0]), str)]
    parsers = _find_parsers(code)
    if not adding and not parsers.words:
        return None
    arguments = []
    for call in adding:
        argument = _read_add_argument(code, call) if parsers.has_argument(_owner(call)) else None
        arguments += [argument] if argument is not None else []
    line = adding[0].lineno if adding else 1
    return CommandLine("argparse", CodePlace(code.path, line), tuple(arguments), parsers.chosen)


def _method(call: ast.Call) -> str:
    """Return the name of the method that a call calls; empty for a function."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _owner(call: ast.Call) -> str:
    """Return the variable whose method a call calls."""
    match call.func:
        case ast.Attribute(value=ast.Name(id=variable)):
            return variable
    return ""


def _find_parsers(code: SourceCode) -> _Parsers:
    words: dict[str, str] = {}
    groups: dict[str, str] = {}
    exclusive: set[str] = set()
    for node in code.nodes:
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        call = node.value
        target = node.targets[0]
        if not isinstance(target, ast.Name):
            continue
        word = code.literal(call.args[0]) if call.args else ...
        match _method(call):
            case "add_parser" if isinstance(word, str):
                words[target.id] = word
            case "add_argument_group":
                groups[target.id] = _owner(call)
            case "add_mutually_exclusive_group":
                groups[target.id] = _owner(call)
                exclusive.add(target.id)
            case _:
                continue
    return _Parsers(words, groups, frozenset(exclusive))


def _read_add_argument(code: SourceCode, call: ast.Call) -> Argument | None:
    names = [value for value in map(code.literal, call.args) if isinstance(value, str) and value]
    flag = choose_flag([name for name in names if name.startswith("-")])
    name = flag.lstrip("-") or (names[0] if names else "")
    action = code.literal(find_keyword(call, "action"))
    if not name or action in ("version", "help"):
        return None
    default = code.literal(find_keyword(call, "default"))
    nargs = code.literal(find_keyword(call, "nargs"))
    is_required = code.literal(find_keyword(call, "required")) is True
    if not flag:
        is_required = nargs not in ("?", "*") and find_keyword(call, "default") is None
    takes_many = nargs is not ... and nargs not in (None, "?", 1)
    value = None if takes_many else _default_text(default)
    choices = code.texts(find_keyword(call, "choices"))
    kind = _find_kind(code, call, action, default)
    return Argument(name, flag, kind, CodePlace(code.path, call.lineno), value, is_required, choices)


def choose_flag(flags: list[str]) -> str:
    """Return the long one of some options; empty: there is none."""
    return next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")


def _find_kind(code: SourceCode, call: ast.Call, action: object, default: object) -> ArgumentKind:
    """Return what an argument of argparse takes."""
    action_node = find_keyword(call, "action")
    if action in _FLAG_ACTIONS:
        return ArgumentKind.FLAG
    if action_node is not None and code.whole_name(action_node).endswith("BooleanOptionalAction"):
        return ArgumentKind.FLAG
    type_name = code.whole_name(find_keyword(call, "type") or ast.Constant(None)).rpartition(".")[2]
    if type_name == "bool":
        return ArgumentKind.TEXT  # `--x False` is a text that argparse reads as true
    return _kind_of(default, type_name)


def _read_absl(code: SourceCode) -> CommandLine | None:
    arguments = []
    required: set[str] = set()
    for call in code.calls:
        method = _method(call) or code.whole_name(call.func).rpartition(".")[2]
        if method in ("mark_flag_as_required", "mark_flags_as_required") and call.args:
            value = code.literal(call.args[0])
            required.update([value] if isinstance(value, str) else code.texts(call.args[0]))
        name = code.literal(call.args[0]) if call.args and method.startswith("DEFINE_") else ...
        if isinstance(name, str) and name:
            arguments.append(_read_definition(code, call, method, name))
    if not arguments:
        return None
    marked = [replace(part, is_required=part.is_required or part.name in required) for part in arguments]
    return CommandLine("absl", arguments[0].place, tuple(marked), form="=")


def _read_definition(code: SourceCode, call: ast.Call, method: str, name: str) -> Argument:
    """Return the argument of `flags.DEFINE_float("lr", 0.1, "...")`."""
    default = code.literal(call.args[1] if len(call.args) > 1 else find_keyword(call, "default"))
    kind = _ABSL.get(method, ArgumentKind.TEXT)
    choices = code.texts(call.args[2]) if method == "DEFINE_enum" and len(call.args) > 2 else ()
    is_required = code.literal(find_keyword(call, "required")) is True
    text = _default_text(default) if method in _ABSL else None
    return Argument(name, f"--{name}", kind, CodePlace(code.path, call.lineno), text, is_required, choices)


def _functions(code: SourceCode) -> list[_Function]:
    return [node for node in code.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def _decorator_calls(function: _Function) -> Iterable[ast.Call]:
    return (decorator for decorator in function.decorator_list if isinstance(decorator, ast.Call))


def _is_command(code: SourceCode, function: _Function, library: str) -> bool:
    """Return True for a function below `@click.command()`, `@app.command` or `@cli.command(...)`."""
    for decorator in function.decorator_list:
        name = _decorator_name(code, decorator)
        if name == f"{library}.command" or name.endswith(".command"):
            return True
    return False


def _command_name(code: SourceCode, function: _Function) -> str:
    for call in _decorator_calls(function):
        name = code.literal(call.args[0]) if call.args and code.whole_name(call.func).endswith("command") else ...
        if isinstance(name, str):
            return name
    return function.name.replace("_", "-")


def _choose_function(code: SourceCode, functions: list[_Function]) -> _Function:
    names = {_command_name(code, function): function for function in functions}
    return next((names[word] for word in _FAVOURITES if word in names), functions[0])


def _read_click(code: SourceCode) -> CommandLine | None:
    if not any(name.partition(".")[0] in ("click", "rich_click") for name in code.names.values()):
        return None
    functions = [function for function in _functions(code) if _is_command(code, function, "click")]
    if not functions:
        return None
    function = _choose_function(code, functions)
    decorators = [decorator for owner in _functions(code) for decorator in owner.decorator_list]
    has_group = any(_decorator_name(code, decorator).endswith(".group") for decorator in decorators)
    options = [_read_click_option(code, call) for call in _decorator_calls(function)]
    arguments = tuple(option for option in options if option is not None)
    subcommand = _command_name(code, function) if has_group else ""
    return CommandLine("click", CodePlace(code.path, function.lineno), arguments, subcommand)


def _decorator_name(code: SourceCode, decorator: ast.expr) -> str:
    return code.whole_name(decorator.func if isinstance(decorator, ast.Call) else decorator)


def _read_click_option(code: SourceCode, call: ast.Call) -> Argument | None:
    """Return the argument of `@click.option("--lr", default=0.1)`; None for another decorator."""
    method = code.whole_name(call.func).rpartition(".")[2]
    names = [value for value in map(code.literal, call.args) if isinstance(value, str) and value]
    if method not in ("option", "argument") or not names:
        return None
    default = code.literal(find_keyword(call, "default"))
    type_node = find_keyword(call, "type")
    type_name = code.whole_name(type_node or ast.Constant(None)).rpartition(".")[2].lower()
    choices = code.texts(type_node.args[0]) if isinstance(type_node, ast.Call) and type_node.args else ()
    flag = choose_flag(names) if method == "option" else ""
    is_switch = code.literal(find_keyword(call, "is_flag")) is True or "/" in flag
    kind = ArgumentKind.FLAG if is_switch else _kind_of(default, type_name)
    needs = code.literal(find_keyword(call, "required"))
    is_required = needs is True or (method == "argument" and needs is not False and default is ...)
    text = None if code.literal(find_keyword(call, "multiple")) is True else _default_text(default)
    name = (flag or names[0]).strip("-")
    return Argument(name, flag, kind, CodePlace(code.path, call.lineno), text, is_required, choices)


def _read_typer(code: SourceCode) -> CommandLine | None:
    if not any(name.partition(".")[0] == "typer" for name in code.names.values()):
        return None
    functions = _find_handed(code, "typer.run")
    has_words = False
    if not functions:
        functions = [function for function in _functions(code) if _is_command(code, function, "typer")]
        has_words = len(functions) > 1
    if not functions:
        return None
    function = _choose_function(code, functions)
    subcommand = _command_name(code, function) if has_words else ""
    arguments = _read_signature(code, function, "typer")
    return CommandLine("typer", CodePlace(code.path, function.lineno), tuple(arguments), subcommand)


def _find_handed(code: SourceCode, name: str) -> list[_Function]:
    """Return the functions that are the argument of a call: `typer.run(main)`."""
    names = {
        call.args[0].id
        for call in code.calls
        if code.whole_name(call.func) == name and call.args and isinstance(call.args[0], ast.Name)
    }
    return [function for function in _functions(code) if function.name in names]


def _read_fire(code: SourceCode) -> CommandLine | None:
    functions = _find_handed(code, "fire.Fire")
    if not functions:
        return None
    arguments = [
        Argument(part.name, f"--{part.name}", part.kind, part.place, part.default, part.is_required)
        for part in _read_signature(code, functions[0], "fire")
    ]
    return CommandLine("fire", CodePlace(code.path, functions[0].lineno), tuple(arguments), form="=")


def _read_signature(code: SourceCode, function: _Function, library: str) -> list[Argument]:
    """Return the parameters of a function as arguments."""
    spec = function.args
    plain = [*spec.posonlyargs, *spec.args]
    missing: list[ast.expr | None] = [None] * (len(plain) - len(spec.defaults))
    pairs = [*zip(plain, [*missing, *spec.defaults], strict=True), *zip(spec.kwonlyargs, spec.kw_defaults, strict=True)]
    return [_read_parameter(code, parameter, default, library) for parameter, default in pairs]


def _read_parameter(code: SourceCode, parameter: ast.arg, default: ast.expr | None, library: str) -> Argument:
    """Return a parameter as an argument: `lr: float = 0.1`, or with a call of typer as its default or annotation."""
    type_node, meaning = _split_annotation(code, parameter.annotation)
    if isinstance(default, ast.Call) and code.whole_name(default.func).startswith(library):
        meaning = default
        default = meaning.args[0] if meaning.args else find_keyword(meaning, "default")
    if isinstance(default, ast.Constant) and default.value is ...:
        default = None
    value = code.literal(default)
    method = code.whole_name(meaning.func).rpartition(".")[2] if meaning is not None else ""
    word = parameter.arg if library == "fire" else parameter.arg.replace("_", "-")
    names = [f"--{word}"]
    if meaning is not None and method == "Option":
        words = [code.literal(part) for part in meaning.args]
        names = [name for name in words if isinstance(name, str) and name.startswith("--")] or names
    flag = "" if method == "Argument" or (default is None and method != "Option") else names[0]
    kind = _kind_of(value, code.whole_name(type_node) if type_node is not None else "")
    place = CodePlace(code.path, parameter.lineno)
    return Argument(flag.strip("-") or parameter.arg, flag, kind, place, _default_text(value), default is None)


def _split_annotation(code: SourceCode, annotation: ast.expr | None) -> tuple[ast.expr | None, ast.Call | None]:
    """Return the type, and the call of typer, of `Annotated[float, typer.Option()]`."""
    if not isinstance(annotation, ast.Subscript) or not code.whole_name(annotation.value).endswith("Annotated"):
        return annotation, None
    parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    return parts[0], next((part for part in parts[1:] if isinstance(part, ast.Call)), None)


def _read_dataclass(code: SourceCode) -> CommandLine | None:
    """Read the fields of a dataclass that tyro, simple_parsing or transformers parses."""
    classes = {node.name: node for node in code.nodes if isinstance(node, ast.ClassDef)}
    for call in code.calls:
        name = code.whole_name(call.func)
        if not any(name.endswith(parser) for parser in _DATACLASS_PARSERS) or not call.args:
            continue
        values = call.args[0].elts if isinstance(call.args[0], ast.Tuple | ast.List) else [call.args[0]]
        chosen = [classes[value.id] for value in values if isinstance(value, ast.Name) and value.id in classes]
        arguments = [argument for owner in chosen for argument in _read_fields(code, owner)]
        if arguments:
            return CommandLine(name.partition(".")[0], CodePlace(code.path, call.lineno), tuple(arguments))
    return None


def _read_fields(code: SourceCode, owner: ast.ClassDef) -> Iterable[Argument]:
    for statement in owner.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            node = statement.value
            if isinstance(node, ast.Call) and code.whole_name(node.func).endswith("field"):
                node = find_keyword(node, "default") or ast.Tuple([], ast.Load())
            default = code.literal(node)
            kind = _kind_of(default, code.whole_name(statement.annotation))
            name = statement.target.id
            place = CodePlace(code.path, statement.lineno)
            yield Argument(name, f"--{name}", kind, place, _default_text(default), node is None)


def _read_hydra(code: SourceCode, texts: Mapping[str, str]) -> CommandLine | None:
    calls = (call for function in _functions(code) for call in _decorator_calls(function))
    call = next((call for call in calls if code.whole_name(call.func) == "hydra.main"), None)
    if call is None:
        return None
    folder = code.literal(find_keyword(call, "config_path"))
    name = code.literal(find_keyword(call, "config_name"))
    stem = posixpath.join(
        posixpath.dirname(code.path),
        folder if isinstance(folder, str) else ".",
        name.removesuffix(".yaml") if isinstance(name, str) else "config",
    )
    paths = [posixpath.normpath(stem) + ending for ending in (".yaml", ".yml")]
    arguments = [argument for path in paths if path in texts for argument in _read_configuration(path, texts[path])]
    fixed = ('hydra.run.dir="$OUTPUT_DIR"',)
    return CommandLine("hydra", CodePlace(code.path, call.lineno), tuple(arguments), form="=", fixed=fixed)


def _read_configuration(path: str, text: str) -> Iterable[Argument]:
    """Yield the values of a configuration of hydra, down to the second level."""
    root = parse_document(text, path).root
    for entry in root.entries if isinstance(root, MappingNode) else ():
        if entry.key.text in ("defaults", "hydra"):
            continue
        inner = entry.value.entries if isinstance(entry.value, MappingNode) else ()
        pairs = [(entry.key.text, entry)] + [(f"{entry.key.text}.{part.key.text}", part) for part in inner]
        for name, part in pairs:
            value = part.value
            if isinstance(value, ScalarNode) and not value.empty and "${" not in value.text and "???" not in value.text:
                is_number = _is_number(value.text) and value.plain
                kind = ArgumentKind.NUMBER if is_number else ArgumentKind.TEXT
                yield Argument(name, name, kind, CodePlace(path, value.position.line), value.text)
            elif isinstance(value, ScalarNode) and value.text == "???":
                yield Argument(name, name, ArgumentKind.TEXT, CodePlace(path, value.position.line), is_required=True)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
