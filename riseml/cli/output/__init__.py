"""What commands print. Only `printer` and `live`, which it uses, write to a stream; all other modules are pure.

Modules: `text` (terminal-safe text, times, amounts), `widths` (how wide text is on a terminal), `style` (colours),
`tables`, `cards` (wide tables on every terminal), `live` (a view in its own place), `trends` (what a live view
remembers), `progress` (how far long work is), `log_lines` (a log), `problem_lines` (errors and problems of
riseml.yml), `experiment_views`, `monitor_view`, `waiting_view`, `host_views`, `plan_view`,
`explanation_view` (one view each as lines), `printer`.

Not here: requests to the server, and decisions of commands.
"""
