"""The tables of broken files: a title, the text of a file, and the problems that a user reads."""

from __future__ import annotations

from pathlib import Path

Case = tuple[str, str, list[str]]
"""A title, the text, and its problems."""


def read_cases(name: str) -> list[Case]:
    """Return the cases of a table of this folder."""
    cases = []
    for block in Path(__file__).with_name(name).read_text(encoding="utf-8").split("\n===== ")[1:]:
        title, _, rest = block.partition("\n")
        text, _, expected = rest.partition("\n>>>>>\n")
        cases.append((title, f"{text}\n" if text else "", expected.strip("\n").split("\n")))
    return cases


def write_certificates(folder: Path) -> Path:
    """Write the files that the tables name into a folder, and return it."""
    for name, mode, text in (
        ("ca.pem", 0o644, ""),
        ("cert.pem", 0o644, ""),
        ("key.pem", 0o600, "-----BEGIN PRIVATE KEY-----\n"),
        ("open.pem", 0o644, "-----BEGIN PRIVATE KEY-----\n"),
        ("locked.pem", 0o600, "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(mode)
    return folder
