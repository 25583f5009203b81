"""The control plane: one process, one control loop, one store, one HTTP API."""
