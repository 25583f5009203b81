"""Files of projects and outputs on this machine: what a project sends, how it travels, and where outputs are.

No network, no host and no database: `executors` and `data_stores` bring files elsewhere, `store` keeps them.
"""
