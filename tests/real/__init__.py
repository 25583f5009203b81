"""Tests against real engines, processes, ssh servers and stores."""
