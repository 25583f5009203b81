"""The riseml.yml that fits a project, and that no code of the project runs to find out."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from riseml.project_reading.config_text import make_project_config
from riseml.project_reading.project_files import read_project_files
from riseml.spec.config.loader import check_config

MAIN = 'if __name__ == "__main__":\n    main()\n'
ARGPARSE = """\
import argparse
import torch
import torch.distributed as dist
STEPS = 500
parser = argparse.ArgumentParser()
parser.add_argument("-l", "--lr", type=float, default=1e-3)
parser.add_argument("--steps", type=int, default=STEPS)
parser.add_argument("--opt", choices=["sgd", "adam"], default="sgd")
parser.add_argument("--amp", action="store_true")
parser.add_argument("--out", default="model.pt")
parser.add_argument("--data-dir", required=True)
parser.add_argument("--name", required=True)
parser.add_argument("--num-workers", type=int, default=2)
parser.add_argument("--local_rank", type=int, default=0)
group = parser.add_mutually_exclusive_group()
group.add_argument("--resume", default="x")
def main():
    dist.init_process_group("gloo")
    print(f"epoch {1}: train loss {0.1:.4f}, acc: {3:.2f}%")
    torch.save({}, f"ckpt/{1}.pt")
"""
CLICK = """\
import click
import tensorflow as tf
@click.group()
def cli(): pass
@cli.command()
def test(): pass
@cli.command()
@click.option("--lr", default=0.01)
@click.option("--out-dir", default="out")
@click.option("--fast/--slow")
@click.argument("data")
def train(lr, out_dir, fast, data):
    tf.distribute.MultiWorkerMirroredStrategy()
    model.compile(metrics=["accuracy"])
    model.fit(x, y, validation_split=0.1)
cli()
"""
TYPER = """\
from typing import Annotated
import typer
app = typer.Typer()
@app.command()
def main(name: str, lr: float = 0.1, epochs: Annotated[int, typer.Option("--n-epochs")] = 3, fast: bool = False):
    print("epoch", 1, "loss", 2)
app()
"""
HYDRA = """\
import hydra
import lightning as L
@hydra.main(config_path="../conf", config_name="config", version_base=None)
def main(cfg):
    L.Trainer(strategy="ddp")
"""
ABSL = """\
import tensorflow as tf
flags = tf.app.flags
flags.DEFINE_string("job_name", None, "")
flags.DEFINE_integer("task_index", 0, "")
flags.DEFINE_string("ps_hosts", "", "")
flags.DEFINE_string("worker_hosts", "", "")
flags.DEFINE_float("learning_rate", 0.1, "")
flags.mark_flag_as_required("task_index")
tf.app.run()
"""
NOTEBOOK = json.dumps(
    {
        "cells": [
            {"cell_type": "markdown", "source": "x"},
            {
                "cell_type": "code",
                "source": ["%pip install pandas\n", "import sklearn\n", 'print(f"loss: {1}")\n', "!ls\n"],
            },
        ]
    }
)
DOCKERFILE = """\
ARG V=3.10
FROM python:${V}-slim AS base
RUN apt-get update && \\
    apt-get install -y git
ENV MODE=fast PATH=/x
COPY . .
RUN pip install numpy
RUN echo hi
"""
POETRY = '[tool.poetry]\nname = "x"\n[tool.poetry.dependencies]\npython = "^3.12"\ntorch = "^2.1"\n'
UV = '[project]\nname = "x"\ndependencies = ["tensorflow>=2.15,<2.17"]\n[build-system]\nrequires = []\n'

PROJECTS: Mapping[str, tuple[Mapping[str, str], tuple[str, ...]]] = {
    "argparse": (
        {"main.py": ARGPARSE + MAIN, "requirements.txt": "# x\ntorch==2.3.1\nnumpy\n"},
        (
            "  framework: pytorch            # main.py:2 imports torch",
            '    version: "2.3.1-cuda12.1-cudnn8-runtime" # requirements.txt:2 asks for torch==2.3.1',
            "    distributed:                # main.py:18 torch.distributed.init_process_group",
            "    - pip install -r requirements.txt",
            "    lr: 0.001\n    steps: 500\n    opt: sgd\n\n",
            "  # fill in --name, which is required",
            "  # switches that are off: --amp",
            '    torchrun main.py --lr {{lr}} --steps {{steps}} --opt {{opt}} --out "$OUTPUT_DIR/model.pt"',
            " --data-dir {{data_dir}}\n    --name TODO\n",
            "  outputs: [ckpt]",
            r"    train_loss: '\btrain +loss *([-+.0-9e]+)'",
            r"    acc: '\bacc: *([-+.0-9e]+)'",
            r"    step: '\bepoch *([0-9]+)'",
        ),
    ),
    "click and uv": (
        {"train.py": CLICK, "pyproject.toml": UV, "uv.lock": ""},
        (
            '    version: "2.16.1"           # pyproject.toml:3 asks for tensorflow>=2.15,<2.17',
            "      worker: 2                 # worker.1 and worker.2\n      chief: worker",
            "    - pip install uv",
            "pip install -r /dev/stdin  # of pyproject.toml and uv.lock'",
            '    python train.py train --lr {{lr}} --out-dir "$OUTPUT_DIR" {{data_dir}}',
            "    val_loss: 'val_loss: ([-+.0-9e]+)'",
        ),
    ),
    "typer and conda without conda": (
        {
            "app.py": TYPER,
            "environment.yml": "dependencies:\n- python=3.10\n- pip\n- pip:\n  - typer\n  - numpy>=1.2\n",
        },
        (
            "  image: python:3.10",
            "    - \"pip install typer 'numpy>=1.2'\"",
            "    python app.py TODO --lr {{lr}} --n-epochs {{n-epochs}}",
            r"    loss: '\bloss *([-+.0-9e]+)'",
        ),
    ),
    "conda": (
        {
            "run.py": "import jax\njax.distributed.initialize()\n",
            "environment.yml": "dependencies: [python=3.11, jax]\n",
        },
        (
            "  image: mambaorg/micromamba:2.0.5",
            "    - 'micromamba install -y -n base -f environment.yml && micromamba clean -y -a'",
            "    distributed:                # run.py:2 jax.distributed.initialize",
            "    micromamba run -n base python run.py",
        ),
    ),
    "hydra and pipenv": (
        {
            "src/train.py": HYDRA + MAIN,
            "conf/config.yaml": "defaults: [x]\nlr: 1e-3\noptimizer:\n  name: sgd\npath: /x/y\nneed: ???\n",
            "Pipfile": '[packages]\nlightning = "*"\n[requires]\npython_version = "3.10"\n',
        },
        (
            "    lr: 1e-3\n    optimizer.name: sgd\n",
            '    torchrun src/train.py hydra.run.dir="$OUTPUT_DIR" lr={{lr}} optimizer.name={{optimizer.name}}\n',
            "    need=TODO\n",
            "    - pip install pipenv\n    - pipenv install --system",
        ),
    ),
    "flags of TensorFlow 1": (
        {"trainer.py": ABSL, "requirements.txt": "tensorflow==1.15.0\n"},
        (
            '    version: "1.15.0"',
            "      worker: 2                 # master and worker.1\n      ps: 1",
            "    python trainer.py --job_name={{job_name}} --task_index={{task_index}} --ps_hosts={{ps_hosts}}",
            "    --worker_hosts={{worker_hosts}} --learning_rate={{learning_rate}}",
        ),
    ),
    "a notebook": (
        {"a.ipynb": NOTEBOOK},
        (
            "    - pip install pandas\n    - pip install scikit-learn\n    - pip install nbconvert ipykernel",
            '    jupyter nbconvert --to notebook --execute --output-dir "$OUTPUT_DIR" a.ipynb',
            r"    loss: '\bloss: *([-+.0-9e]+)'",
        ),
    ),
    "a Dockerfile": (
        {
            "main.py": 'import numpy\nopen("result.json", "w")\nprint(1)\n',
            "Dockerfile": DOCKERFILE,
            "requirements.txt": "x",
        },
        (
            "  image: python:3.10-slim       # Dockerfile:2",
            "    - 'apt-get update && apt-get install -y git'\n    - pip install numpy\n\n",
            "    MODE: fast\n",
            "  outputs: [result.json]",
        ),
    ),
    "horovod": (
        {"main.py": "import horovod.torch as hvd\nimport torch\nhvd.init()\n"},
        ("  pytorch:\n    horovod:                    # main.py:1 import horovod.torch\n      workers: 2",),
    ),
    "a package and poetry": (
        {
            "pkg/__main__.py": f"from . import x\nimport torch\n{MAIN}",
            "pkg/__init__.py": "",
            "pkg/x.py": 'import torch\ntorch.nn.Linear(1, 1).to("cuda:0")\n',
            "pyproject.toml": POETRY,
        },
        (
            "    gpus: 1                     # pkg/x.py:2 uses a GPU without asking whether there is one",
            "    - pip install poetry\n    - POETRY_VIRTUALENVS_CREATE=false poetry install --only main --no-root",
            "    python -m pkg\n",
        ),
    ),
    "required numbers and shares": (
        {
            "main.py": """\
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--mode", choices=["a", "b"], required=True)
print("Test set: Average loss: {:.4f}, Accuracy: {}/{} ({:.0f}%)".format(1, 2, 3, 4))
print("score: {}/{}".format(1, 2))
"""
        },
        (
            "    lr: 1\n",
            "    python main.py --lr {{lr}} --mode a\n",
            r"    average_loss: '\bAverage +loss: *([-+.0-9e]+)'",
            r"    accuracy: '\bAccuracy: *[0-9]+/[0-9]+ *\(([-+.0-9e]+)'" + "\n",
        ),
    ),
    "a shell script that launches": (
        {"main.py": "import torch\nprint(1)\n", "go.sh": "#!/bin/sh\ntorchrun --nnodes 2 main.py\n"},
        ("    distributed:                # go.sh:2 torchrun", "    torchrun main.py"),
    ),
    "setup.py": (
        {
            "train.py": f"import fire\ndef main(lr=0.1): pass\nfire.Fire(main)\n{MAIN}",
            "setup.py": "NEEDS = ['torch']\nsetup(install_requires=NEEDS)\n",
        },
        (
            "  framework: pytorch            # setup.py:2 asks for torch",
            "    - pip install .",
            "    python train.py --lr={{lr}}",
        ),
    ),
}


@pytest.mark.parametrize("name", PROJECTS)
def test_a_project_gets_a_file_that_fits_it(name: str) -> None:
    files, expected = PROJECTS[name]
    fitting = make_project_config(files, "folder")
    assert fitting is not None
    missing = [part for part in expected if part not in fitting.text]
    assert not missing, fitting.text
    assert check_config(fitting.text).problems == ()


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"lib.py": "def f(): pass\n"},
        {"broken.py": "def f(:\n"},
        {"a.ipynb": "{", "b.ipynb": '{"cells": 3}'},
        {"a\nb.py": "print(1)\n", "train {{x}}.py": "print(1)\n"},
        {"setup.py": "setup(install_requires=['torch'])\n"},
    ],
)
def test_a_project_without_a_program_gets_none(files: Mapping[str, str]) -> None:
    assert make_project_config(files, "folder") is None


def test_the_program_that_trains_comes_first_and_the_user_may_name_another() -> None:
    program = "print(1)\n"
    files = {"util.py": program, "eval.py": program, "main.py": "import util\n" + program, "train_it.py": program}
    fitting = make_project_config(files, "folder")
    assert fitting is not None
    assert fitting.proposal.choices == ("main.py", "train_it.py", "eval.py", "util.py")
    named = make_project_config(files, "folder", "eval.py")
    assert named is not None
    assert "    python eval.py\n" in named.text


def test_a_version_that_no_image_has_is_said() -> None:
    fitting = make_project_config({"main.py": "import torch\nprint(1)\n", "requirements.txt": "torch==0.4.1\n"}, "x")
    assert fitting is not None
    assert fitting.proposal.remarks[0].startswith("requirements.txt:1 asks for torch==0.4.1, and riseml knows no such")


def test_links_pipes_large_and_broken_files_are_harmless(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("print(1)\n")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "train.py").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "run.py")
    (tmp_path / "large.py").write_text("#" * 300_000)
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "deep.py").write_text("(" * 5_000)
    (tmp_path / "deeper.py").write_text("x = " + "-" * 50_000 + "1")
    (tmp_path / "pyproject.toml").write_text("a = " + "[" * 5_000)
    (tmp_path / "environment.yml").write_text("[" * 5_000)
    (tmp_path / "env").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "pyvenv.cfg").touch()
    (tmp_path / "mine" / "main.py").write_text("print(1)\n")
    files = read_project_files(tmp_path)
    assert sorted(files) == ["deep.py", "deeper.py", "environment.yml", "main.py", "pyproject.toml"]
    fitting = make_project_config(files, "folder")
    assert fitting is not None
    assert fitting.proposal.choices == ("main.py",)


def test_a_folder_of_many_files_is_read_within_bounds(tmp_path: Path) -> None:
    for number in range(1_000):
        (tmp_path / f"m{number}.py").write_text("x = 1\n")
    assert len(read_project_files(tmp_path)) <= 300


_PIECES = st.sampled_from(
    [
        *(ARGPARSE, CLICK, TYPER, HYDRA, ABSL, NOTEBOOK, DOCKERFILE, POETRY, UV, MAIN),
        *(files[name] for files, _ in PROJECTS.values() for name in files),
        'import argparse\np = argparse.ArgumentParser()\np.add_argument("--path", default="x")\n',
        'p.add_argument("--rank", type=int, required=True)\np.add_argument("--{{x}}", default=1)\n',
        'flags.DEFINE_integer("output_dir", 3, "")\nprint(f"{a} loss {b}")\n',
        'p.add_argument("--true", default="yes: #no")\np.add_argument("--on", default="on")\n',
        'torch.save(x, "a b/c")\nopen("data", "w")\nplt.savefig("../x.png")\nSummaryWriter()\n',
        "torch>=2.0 ; python_version > '3'\n-r other.txt\n-e .\n@@@\n",
    ]
)
_TEXTS = st.lists(_PIECES | st.text(max_size=40), max_size=3).map("\n".join)
_NAMES = st.sampled_from(
    [
        *("train.py", "main.py", "src/run.py", "pkg/__main__.py", "a.ipynb", "requirements.txt", "pyproject.toml"),
        *("environment.yml", "Pipfile", "setup.py", "setup.cfg", "uv.lock", "poetry.lock", "Dockerfile", "go.sh"),
        *("conf/config.yaml", ".python-version"),
    ]
)


@given(st.dictionaries(_NAMES, _TEXTS, max_size=5), st.text(max_size=10))
def test_any_project_gets_a_valid_file_or_none_and_runs_no_code(files: Mapping[str, str], folder: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        sign = Path(place, "sign")
        project = Path(place, "project")
        for name, text in files.items():
            path = project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            code = f"open({str(sign)!r}, 'w')\n" if name.endswith(".py") else ""
            path.write_text(code + text, encoding="utf-8", errors="replace")
        modules = set(sys.modules)
        fitting = make_project_config(read_project_files(project), folder)
        assert not sign.exists()
        assert not {"train", "main", "setup", "pkg"} & (set(sys.modules) - modules)
    if fitting is not None:
        assert check_config(fitting.text).spec is not None, fitting.text
