"""Distributed training on Docker hosts you own.

This package is imported inside users' containers too, so that nothing heavy may be imported here.
"""

__version__ = "2.0.0.dev0"
