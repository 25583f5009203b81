"""riseml.yml: text to a `Spec`, or to all its problems.

Here: the dataclasses, the loader, command-line overrides, templates and files of older generations.
Not here: YAML itself (`spec.yaml`), and anything that depends on hosts or other experiments.
"""
