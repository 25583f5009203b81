"""What several test packages share: a private server, PostgreSQL and registry, and waiting with a deadline."""
