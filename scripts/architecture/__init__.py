"""Draw the pictures of docs/architecture.md from the imports of the code.

    .venv/bin/python -m scripts.architecture            # writes docs/architecture-*.svg
    .venv/bin/python -m scripts.architecture --check    # exit code 1 when a picture is not up to date

Modules: `imports` (the import graph), `pictures` (what each picture shows), `layout` (where boxes and lines are), `svg`
(boxes and lines as text). The same imports always give the same bytes.
"""
