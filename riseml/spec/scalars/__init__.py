"""What the text of one value means: numbers, memory, durations, engine URLs, placeholders.

Here: functions that take a text and return its value, or raise `BadText` with the problem and the hint.
Not here: YAML (`spec.yaml`), and which key takes which kind of value (`spec.schema`).
"""
