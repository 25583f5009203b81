"""An editor for tests: it talks to yaml-language-server as editors do, and asks what they would show at a position."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

MARK = "¦"
"""Where the cursor is in the text of a document."""


class Editor:
    """A session with a language server. `open_file` shows a document, whose text has the cursor as MARK."""

    def __init__(self, reading: IO[bytes], writing: IO[bytes]) -> None:
        self._reading = reading
        self._writing = writing
        self._asked = 0
        self._place: Mapping[str, Any] = {}
        self._ask("initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": {}})
        self._send({"method": "initialized", "params": {}})

    def open_file(self, path: Path, text: str) -> None:
        """Show a document, with the cursor where MARK is."""
        before, _, after = text.partition(MARK)
        lines = before.split("\n")
        position = {"line": len(lines) - 1, "character": len(lines[-1])}
        self._place = {"textDocument": {"uri": path.as_uri()}, "position": position}
        document = {"uri": path.as_uri(), "languageId": "yaml", "version": 1, "text": before + after}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})

    def list_completions(self) -> list[Mapping[str, Any]]:
        """Return what the editor offers at the cursor."""
        answer = self._ask("textDocument/completion", self._place)
        items: list[Mapping[str, Any]] = answer["items"] if isinstance(answer, dict) else answer or []
        return items

    def read_hover(self) -> str:
        """Return what the editor says of the word at the cursor."""
        answer = self._ask("textDocument/hover", self._place)
        return str(answer["contents"]["value"]) if answer else ""

    def _ask(self, method: str, parameters: Mapping[str, Any]) -> Any:
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": parameters})
        while True:
            message = self._receive()
            if message.get("id") == self._asked and "method" not in message:
                assert "error" not in message, message["error"]
                return message["result"]
            if "id" in message:  # the server asks for the settings of the editor, or registers itself
                items = message.get("params", {}).get("items", [])
                self._send({"id": message["id"], "result": [{} for _ in items] if items else None})

    def _send(self, message: Mapping[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._writing.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        self._writing.flush()

    def _receive(self) -> dict[str, Any]:
        length = 0
        while line := self._reading.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length, "the language server has ended"
        message: dict[str, Any] = json.loads(self._reading.read(length))
        return message


@contextmanager
def open_editor(command: Sequence[str | Path]) -> Iterator[Editor]:
    """Start a language server, and end it."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        try:
            assert server.stdin is not None
            assert server.stdout is not None
            yield Editor(server.stdout, server.stdin)
        finally:
            server.kill()
