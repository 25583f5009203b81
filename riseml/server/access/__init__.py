"""Ways of a client into a running job: streams, and HTTP requests to its ports."""
