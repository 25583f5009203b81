"""`tag`, `note`, `star`, `rename`, `archive`: what a user says about experiments. `--remove` takes it back."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from riseml.base.annotations import read_text
from riseml.base.errors import UsageError
from riseml.base.names import looks_like_id
from riseml.cli.commands.options import JsonOption
from riseml.cli.output.text import clean_text, count_noun
from riseml.client.identities import find_identity

if TYPE_CHECKING:
    from riseml import wire
    from riseml.cli.context import CommandContext

WordsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="ID [ID...] TAG [TAG...]", show_default=False, help="Experiments, sets, members of sets; then the tags."
    ),
]
IdsArgument = Annotated[
    list[str], typer.Argument(metavar="ID [ID...]", show_default=False, help="Experiments, sets, members of sets.")
]
RemoveOption = Annotated[bool, typer.Option("--remove", help="Take it back.")]

_STANDARD_INPUT = "-"
_EDITOR_HEAD = "<!-- The note of {names}: Markdown. This line is left out; an empty file changes nothing. -->\n"


def tag_experiments(
    context: typer.Context, words: WordsArgument, *, remove: RemoveOption = False, json: JsonOption = False
) -> None:
    """Give tags to experiments, or take them back.

    `riseml tag 4 baseline`, `riseml tag 4 7 9.2 baseline lr`, `riseml tag 4 lr --remove`. The ID of a set stands for
    the set as a whole. A tag stands for the ID where one experiment has it: `riseml logs baseline`.
    """
    count = next((at for at, word in enumerate(words) if at and not looks_like_id(word)), len(words))
    if count == len(words):
        raise UsageError("no tag is given", f"write `riseml tag {clean_text(words[0])} baseline`")
    tags = [read_text("tag", word) for word in words[count:]]
    change: wire.AnnotationChange = {"remove_tags": tags} if remove else {"add_tags": tags}
    _change(context.obj, words[:count], change, json=json)


def note_experiments(
    context: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="ID [ID...] [TEXT]",
            show_default=False,
            help="Without TEXT: from an editor ($VISUAL, $EDITOR), or from standard input.",
        ),
    ],
    *,
    remove: RemoveOption = False,
    json: JsonOption = False,
) -> None:
    """Write the note of experiments: Markdown, kept as it is written.

    It takes the place of an earlier one. `riseml note 4 "diverges after 2k"`, `riseml note 4 < notes.md`,
    `riseml note 4 7 - < notes.md`; on a terminal `riseml note 4` opens an editor. `riseml show 4` prints it.
    """
    command: CommandContext = context.obj
    if remove:
        extra = next((word for word in words[1:] if not looks_like_id(word)), None)
        if extra is not None:
            raise UsageError(f"--remove takes no text, and {extra[:80]!r} is none of the IDs", "leave it out")
        _change(command, words, {"note": ""}, json=json)
        return
    identities, text = (words, None) if len(words) == 1 else (words[:-1], words[-1])
    if text is None or text == _STANDARD_INPUT:
        text = _edit_note(command, identities) if text is None and command.asks else _read_input()
    if text is None:
        command.printer.say("The note is as it was.")
        return
    if not text.strip():
        raise UsageError("the note is empty", f"`riseml note {clean_text(identities[0])} --remove` removes a note")
    _change(command, identities, {"note": read_text("note", text)}, json=json)


def star_experiments(
    context: typer.Context, identities: IdsArgument, *, remove: RemoveOption = False, json: JsonOption = False
) -> None:
    """Star experiments, so that `--where star` and the page show them.

    `riseml star 4 7`, `riseml star 4 --remove`.
    """
    _change(context.obj, identities, {"starred": not remove}, json=json)


def rename_experiment(
    context: typer.Context,
    identity: Annotated[
        str, typer.Argument(metavar="ID", show_default=False, help="An experiment, a set or a member of a set.")
    ],
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", show_default=False, help="Up to 64 characters, and no ID.")
    ] = None,
    *,
    remove: RemoveOption = False,
    json: JsonOption = False,
) -> None:
    """Give an experiment or a set a name.

    Its ID stays, and each of the two stands for it. `riseml rename 4 "lr warmup"`, `riseml rename 4 --remove`.
    """
    if remove == (name is not None):
        problem = "--remove takes no name" if remove else "no name is given"
        raise UsageError(problem, "write `riseml rename 4 baseline`, or `riseml rename 4 --remove`")
    change: wire.AnnotationChange = {"name": "" if name is None else read_text("name", name)}
    _change(context.obj, [identity], change, json=json)


def archive_experiments(
    context: typer.Context, identities: IdsArgument, *, remove: RemoveOption = False, json: JsonOption = False
) -> None:
    """Leave experiments that have ended out of lists. Nothing of them is removed.

    What runs goes on, and stays in the lists until it has ended. `riseml archive 1 2 3`,
    `riseml archive 2 --remove`; `riseml status --archived` lists them, too.
    """
    _change(context.obj, identities, {"archived": not remove}, json=json)


def _change(command: CommandContext, identities: Sequence[str], change: wire.AnnotationChange, *, json: bool) -> None:
    """Change what is said about experiments: about all of them, or about none where an ID is wrong."""
    with command.connect() as client:
        chosen = list(dict.fromkeys(find_identity(client, identity) for identity in identities))
        for identity in chosen if len(chosen) > 1 else ():
            client.get_experiment(identity)
        changed = [client.change_annotation(identity, change) for identity in chosen]
    if json:
        command.printer.print_json({"experiments": changed})
    else:
        command.printer.print_lines([clean_text(describe_annotation(annotation)) for annotation in changed])


def describe_annotation(annotation: wire.AnnotationView) -> str:
    """Return `4: name baseline; tags lr, warmup; starred; a note of 2 lines`."""
    parts = [f"name {annotation['name']}"] if annotation["name"] else []
    parts += [f"{'tag' if len(annotation['tags']) == 1 else 'tags'} {', '.join(annotation['tags'])}"] * bool(
        annotation["tags"]
    )
    parts += ["starred"] * annotation["starred"] + ["archived"] * annotation["archived"]
    lines = len(annotation["note"].splitlines())
    parts += [f"a note of {count_noun(lines, 'line')}"] * bool(lines)
    return f"{annotation['id']}: {'; '.join(parts) or 'nothing is said about it'}"


def _edit_note(command: CommandContext, identities: Sequence[str]) -> str | None:
    """Let the user change the note in an editor; return None when it stays as it was."""
    import click

    with command.connect() as client:
        experiment = client.get_experiment(find_identity(client, identities[0]))
    head = _EDITOR_HEAD.format(names=experiment["id"])
    edited = click.edit(head + experiment.get("note", ""), extension=".md")
    text = (edited or "").removeprefix(head)
    return text if text.strip() and text != experiment.get("note", "") else None


def _read_input() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise UsageError("standard input is not UTF-8 text", "write the note as UTF-8") from None
