"""The key `secrets`: secrets that jobs read as files."""

from __future__ import annotations

from riseml.spec.config.types import SecretFile
from riseml.spec.yaml.problems import KeyPath
from riseml.spec.yaml.values import SourceFile

_PATH: KeyPath = ("train", "secrets")


def read_secret_files(file: SourceFile) -> tuple[SecretFile, ...]:
    """Return the secrets that jobs read as files; none without the key. Problems go to `file`."""
    files: dict[str, SecretFile] = {}
    for path in file.items_at(_PATH):
        name = file.value_at((*path, "name"))
        target = file.value_at((*path, "file")) or name
        if name is None or (*path, "file") in file.bad:
            continue
        if target in files:
            file.refuse(path, f"the file {target} has a secret already: {files[target].name}", "give it another `file`")
            continue
        files[target] = SecretFile(name, target)
    return tuple(files.values())
