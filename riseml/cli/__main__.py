"""Run `python -m riseml.cli` as `riseml`."""

from riseml.cli.main import run

run()
