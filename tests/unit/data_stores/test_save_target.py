"""An output is saved nowhere that this machine does not trust."""

from __future__ import annotations

from pathlib import Path

import pytest

from riseml.base.errors import EngineError
from riseml.data_stores.save_target import open_target
from riseml.data_stores.store_file import Store
from riseml.spec.scalars.data_url import parse_data_url
from tests.support.authority import Authority
from tests.unit.data_stores.store_answers import serve


def test_an_output_is_not_saved_where_the_certificate_is_not_trusted(tmp_path: Path) -> None:
    with serve(Authority(tmp_path, "own").sign("web", ("127.0.0.1",))) as (address, _):
        target = open_target(parse_data_url("s3://b/x"), Store("lab", (), endpoint=f"https://{address}"))
        with pytest.raises(EngineError, match="does not trust the server's certificate"):
            target.read("riseml-saved.json", 0, 100)
        with pytest.raises(EngineError, match="does not trust the server's certificate"):
            target.write("a", 1, iter([b"x"]))
