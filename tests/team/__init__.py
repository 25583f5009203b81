"""The sentences that a server for a team must prove, each in a test with its number."""
