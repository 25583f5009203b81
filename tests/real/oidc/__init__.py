"""Tests with a real provider of OpenID Connect."""
