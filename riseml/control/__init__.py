"""The decision as a value. Pure: no clock, no I/O, no random, no logging; the time is in the observation."""
