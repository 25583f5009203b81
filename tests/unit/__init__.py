"""Tests that need no engine, no root and no network; one package for each package of riseml.

A parameter that needs an engine or PostgreSQL carries the mark `engine` or `postgres`; `make unit` leaves it out.
"""
