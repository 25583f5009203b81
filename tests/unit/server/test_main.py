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
absent = ("charset_normalizer", "chardet", "idna", "requests.packages.idna")
others = [name for name in sys.modules if name.startswith(absent)]
answer = docker.api.client.requests.Response()
answer._content = "J\\u00fcrgen".encode()
import charset_normalizer
asked = docker.api.client.requests.Request("GET", "http://b\u00fccher.example/").prepare()
print(json.dumps([others, answer.text, asked.url]))
"""

_UVICORN = """
import json, sys
from riseml.server.__main__ import _prepare_uvicorn
_prepare_uvicorn()
import uvicorn
others = [name for name in sys.modules if name.startswith(("click", "uvicorn.main", "uvicorn.supervisors"))]
serves = uvicorn.Server(uvicorn.Config(None)).config.port
from uvicorn.main import Server, run
print(json.dumps([others, serves, Server is uvicorn.Server, callable(run)]))
"""

_STREAMS = """
import sys
import riseml.server.process
print([name for name in sys.modules if name.startswith(("websockets", "psutil", "riseml.executors.slurm"))])
"""


def test_the_classes_of_openapi_are_made_for_its_page_and_nothing_of_an_older_pydantic_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", _PYDANTIC], capture_output=True, text=True, check=True)
    assert (json.loads(done.stdout), done.stderr) == ([False, True, True, ["/own"], []], "")


def test_requests_takes_utf_8_without_a_library_that_guesses_and_other_letters_in_names_of_hosts() -> None:
    done = subprocess.run([sys.executable, "-c", _REQUESTS], capture_output=True, text=True, check=True)
    assert (json.loads(done.stdout), done.stderr) == ([[], "J\u00fcrgen", "http://xn--bcher-kva.example/"], "")


def test_uvicorn_serves_without_its_command_line_which_can_be_imported_later() -> None:
    done = subprocess.run([sys.executable, "-c", _UVICORN], capture_output=True, text=True, check=True)
    assert (json.loads(done.stdout), done.stderr) == ([[], 8000, True, True], "")


def test_the_server_imports_no_library_that_only_other_executors_and_streams_need() -> None:
    done = subprocess.run([sys.executable, "-c", _STREAMS], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
