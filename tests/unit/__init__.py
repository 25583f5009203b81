"""Tests that need no engine, no root and no network; one package for each package of riseml."""
