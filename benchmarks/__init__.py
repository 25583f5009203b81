"""Measures riseml on the machine at hand, beside what a user would pick instead; nothing here is a test."""
