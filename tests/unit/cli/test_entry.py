"""The console script, before it has imported the commands."""

from __future__ import annotations

from tests.unit.cli.programs import run_program


def test_a_command_that_is_interrupted_before_it_begins_prints_nothing() -> None:
    text = """
import sys
from riseml.cli.entry import run
class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "riseml.cli.main":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
run()
"""
    assert run_program(text, call="") == (130, "", "")
