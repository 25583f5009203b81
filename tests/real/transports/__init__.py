"""Ways to engines, with real servers at their other ends."""
