"""What every other room may use: names, states, errors, amounts, settings and records. It imports nothing of riseml."""
