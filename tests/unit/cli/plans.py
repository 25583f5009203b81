"""A plan, as the server answers it."""

from __future__ import annotations

from riseml import wire

PLAN: wire.PlanView = {
    "project": "ai-toaster",
    "framework": "plain",
    "image": "riseml/environment:1",
    "base": "python:3.11",
    "replaced_by": None,
    "install": ["pip install x"],
    "refused": None,
    "cached": False,
    "role_environments": [],
    "data": [],
    "save": None,
    "search": None,
    "experiments": [
        {
            "id": "4",
            "output": "/output/4",
            "waits": None,
            "parameters": {"lr": "1"},
            "jobs": [
                {
                    "name": "train",
                    "image": "python:3.11",
                    "part": "DECIDES",
                    "host": None,
                    "cpus": 1.0,
                    "mem_mib": 512,
                    "gpus": 2,
                    "gpu": "a100",
                    "gpu_mem_mib": 40960,
                    "limit_cpus": None,
                    "limit_mem_mib": 2048,
                    "shm_mib": 1024,
                    "environment": {"LR": "1"},
                    "passed_on": ["API_TOKEN"],
                    "run": ["python train.py"],
                    "command": ["sh", "-c", "python train.py"],
                }
            ],
        }
    ],
    "notes": [],
}
