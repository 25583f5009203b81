"""All tests. Their servers remove nothing by themselves on a machine whose disk is nearly full, unless a test is about
that: it sets the variable for its own server."""

import os

CLEAN_ABOVE = "RISEML_CLEAN_ABOVE"
os.environ[CLEAN_ABOVE] = "false"
