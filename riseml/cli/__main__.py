"""`python -m riseml.cli` is `riseml`."""

from riseml.cli.main import run

run()
