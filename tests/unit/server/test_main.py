"""What `python -m riseml.server` does before it imports the server, in a Python of its own."""

from __future__ import annotations

import json
import subprocess
import sys

_PYDANTIC = """
import json, sys
from riseml.server.__main__ import _prepare_pydantic
_prepare_pydantic()
from fastapi import FastAPI
from fastapi.openapi.models import OpenAPI
from pydantic import BaseModel
class Own(BaseModel):
    number: int
begun = OpenAPI.__pydantic_complete__
api = FastAPI()
@api.post("/own")
def read_own(own: Own) -> Own:
    return own
paths = list(api.openapi()["paths"])
own, later = Own.__pydantic_complete__, OpenAPI.__pydantic_complete__
print(json.dumps([begun, own, later, paths, [name for name in sys.modules if name.startswith("pydantic.v1.")]]))
"""

_REQUESTS = """
import json, sys
from riseml.server.__main__ import _prepare_requests
_prepare_requests()
import docker
guesses = [name for name in sys.modules if name.startswith(("charset_normalizer", "chardet"))]
answer = docker.api.client.requests.Response()
answer._content = "J\\u00fcrgen".encode()
import charset_normalizer
print(json.dumps([guesses, answer.text]))
"""


def test_the_classes_of_openapi_are_made_for_its_page_and_nothing_of_an_older_pydantic_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", _PYDANTIC], capture_output=True, text=True, check=True)
    assert (json.loads(done.stdout), done.stderr) == ([False, True, True, ["/own"], []], "")


def test_requests_takes_utf_8_without_a_library_that_guesses() -> None:
    done = subprocess.run([sys.executable, "-c", _REQUESTS], capture_output=True, text=True, check=True)
    assert (json.loads(done.stdout), done.stderr) == ([[], "J\u00fcrgen"], "")
