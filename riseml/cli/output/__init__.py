"""What commands print. Only `printer` and `live`, which it uses, write to a stream; all other modules are pure.

Modules: `text` (terminal-safe text, times, amounts), `widths` (how wide text is on a terminal), `style` (colours),
`tables`, `cards` (wide tables on every terminal), `live` (a view that is redrawn in place), `progress` (bars of long
work), `brief_log` and `log_lines` (a log in its two forms), `end_card` (what is below a log), `problem_lines` (errors
and problems of riseml.yml), `chart` with `terminal_plot`, `svg_plot` and `png_plot`, `sparklines`, one `..._view` for
each view, `printer`.

Not here: requests to the server, and decisions of commands.
"""
