"""What runs jobs: each executor stands for one host. Effects live here, decisions do not."""
