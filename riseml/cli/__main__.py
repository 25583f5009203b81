"""Run `python -m riseml.cli` as `riseml`."""

from riseml.cli.entry import run

run()
