"""`riseml self check` beside a real engine."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command import plain_environ, run_riseml


def test_an_engine_that_answers_has_no_failed_check(engine_url: str, tmp_path: Path) -> None:
    environ = plain_environ(RISEML_HOME=str(tmp_path / "home"), DOCKER_HOST=engine_url)
    result = run_riseml(["self", "check", "--json"], tmp_path, environ)
    findings = json.loads(result.stdout)["findings"]
    by_topic = {finding["topic"]: finding for finding in findings}
    assert by_topic["engine"]["outcome"] == "ok", findings
    assert by_topic["engine"]["message"].startswith("Docker ")
    assert {"driver", "toolkit", "clock"} <= set(by_topic)
    assert result.returncode == any(finding["outcome"] == "failed" for finding in findings)
