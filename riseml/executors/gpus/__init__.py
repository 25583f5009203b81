"""The NVIDIA GPUs of a machine: through NVML here, and from the output of nvidia-smi elsewhere."""
