"""All tests. Their servers remove nothing by themselves on a machine whose disk is nearly full, unless a test is about
that: it sets the variable for its own server."""

import os

os.environ.setdefault("RISEML_CLEAN_ABOVE", "false")
