"""What commands print. `printer` is the only module that writes to a stream; all other modules are pure.

Modules: `text` (terminal-safe text, times, amounts), `widths` (how wide text is on a terminal), `style` (colours),
`tables`, `log_lines` (a log), `problem_lines` (errors and problems of riseml.yml), `experiment_views`, `host_views`,
`plan_view`, `explanation_view` (one view each as lines), `printer`.

Not here: requests to the server, and decisions of commands.
"""
