"""Tests of `riseml.agents`."""
