"""The example projects that riseml brings: whole folders that `riseml init --example` writes."""

from __future__ import annotations

from pathlib import Path

from riseml.base.errors import Conflict, NotFound, Refused
from riseml.base.records import dataclass

_CONFIG = "riseml.yml"
_DIGITS = "get_data.py"  # of the example ai-toaster; others use the same digits
_OWNER = "ai-toaster"
_SKIPPED = frozenset({"__pycache__"})


@dataclass(frozen=True, slots=True)
class ExampleProject:
    """One example."""

    name: str
    summary: str  # the first line of its riseml.yml
    folder: Path
    needs_digits: bool  # its jobs read `digits` in the data folder

    @property
    def digits_script(self) -> Path:
        """The program that fetches the digits."""
        return self.folder.parent / _OWNER / _DIGITS


def list_examples() -> tuple[ExampleProject, ...]:
    """Return all examples by name: of the installed package, or of the repository."""
    package = Path(__file__).parents[1]
    packaged = package / "examples"
    root = packaged if packaged.is_dir() else package.parent / "examples"
    examples = []
    for file in sorted(root.glob(f"*/{_CONFIG}")):
        text = file.read_text(encoding="utf-8")
        first = text.splitlines()[0]
        summary = first.removeprefix("# ").partition(": `riseml train`")[0]
        needs_digits = "{{data_dir}}/digits" in text and "\n  data:" not in text  # that of a store comes from there
        examples.append(ExampleProject(file.parent.name, summary, file.parent, needs_digits))
    return tuple(examples)


def find_example(name: str) -> ExampleProject:
    """Return the example with this name.

    Raises:
        NotFound: there is none.
    """
    examples = list_examples()
    for example in examples:
        if example.name == name:
            return example
    names = ", ".join(example.name for example in examples)
    raise NotFound(f"riseml has no example {name!r}", f"it has {names}; `riseml init --example` describes them")


def write_example(example: ExampleProject, folder: Path) -> int:
    """Write all files of an example into a new folder; return how many they are.

    Raises:
        Conflict: the folder is there and has something in it.
        Refused: it cannot be written.
    """
    sources = sorted(path for path in example.folder.iterdir() if path.name not in _SKIPPED and path.is_file())
    if example.needs_digits and example.name != _OWNER:
        sources.append(example.digits_script)
    try:
        folder.mkdir(exist_ok=True)
        if any(folder.iterdir()):
            raise Conflict(f"{folder.name} is already there, and not empty", "go to another folder, or remove it")
        for source in sources:
            text = source.read_text(encoding="utf-8").replace(f"../{_OWNER}/{_DIGITS}", _DIGITS)
            (folder / source.name).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise Conflict(f"{folder.name} is already there, and no folder", "go to another folder, or remove it") from None
    except OSError as error:
        raise Refused(f"cannot write {folder.name}: {error.strerror}", "check the folder and its disk") from None
    return len(sources)
