"""Benchmarks: riseml on this machine, compared with tools that a user could choose instead. None of them is a test."""
