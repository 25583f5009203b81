"""Variables of the environment that libraries or the system read: a parameter of such a name changes what they do.

Each row names who reads the variables, where its documentation says so, and the names; a name that ends with `*` stands
for all that begin so. docs/frameworks.md has the same table; a test compares them.
"""

from __future__ import annotations

import functools

READERS: tuple[tuple[str, str, str], ...] = (
    (
        "launchers of PyTorch",
        "torch.distributed, torchrun; Lightning, accelerate and timm ask for them",
        "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK GROUP_RANK ROLE_RANK ROLE_NAME GROUP_WORLD_SIZE"
        " ROLE_WORLD_SIZE MASTER_ADDR MASTER_PORT PET_* TORCHELASTIC_*",
    ),
    ("PyTorch", "docs of PyTorch: environment variables", "TORCH_* PYTORCH_* TORCHINDUCTOR_* GLOO_* NCCL_* TP_*"),
    ("TensorFlow and XLA", "tf.distribute: TF_CONFIG; docs of TensorFlow", "TF_* TPU_* XLA_* KERAS_*"),
    ("JAX", "docs of JAX: configuration options", "JAX_*"),
    ("Horovod and MPI", "docs of Horovod, Open MPI and MPICH", "HOROVOD_* HVD_* OMPI_* PMI_* PMIX_* MPI_* UCX_*"),
    ("Slurm", "srun(1): output environment variables; JAX, Lightning and submitit ask for them", "SLURM_* SLURMD_*"),
    (
        "CUDA, ROCm and their libraries",
        "CUDA C++ programming guide; docs of NVIDIA's container toolkit; docs of ROCm",
        "CUDA_* NVIDIA_* CUBLAS_* CUDNN_* GPU_DEVICE_ORDINAL HIP_* ROCR_VISIBLE_DEVICES HSA_*",
    ),
    (
        "OpenMP and libraries of linear algebra",
        "OpenMP 5: environment variables; docs of MKL, OpenBLAS, BLIS and numexpr",
        "OMP_* GOMP_* KMP_* MKL_* OPENBLAS_* GOTO_NUM_THREADS BLIS_* NUMEXPR_* VECLIB_*",
    ),
    (
        "Python and its tools",
        "python(1): PYTHON...; docs of pip, venv and conda; tempfile, shutil.get_terminal_size",
        "PYTHON* PIP_* UV_* VIRTUAL_ENV CONDA_* TMPDIR TEMP TMP COLUMNS LINES NO_COLOR FORCE_COLOR",
    ),
    (
        "libraries for training",
        "docs of Hugging Face, accelerate, Lightning, DeepSpeed, Ray, Weights & Biases, MLflow and Hydra",
        "HF_* TRANSFORMERS_* TOKENIZERS_PARALLELISM ACCELERATE_* PL_* DS_* DEEPSPEED_* RAY_* WANDB_* MLFLOW_* HYDRA_*",
    ),
    (
        "the system",
        "environ(7), locale(7), ld.so(8), tzset(3)",
        "PATH HOME USER LOGNAME SHELL PWD OLDPWD LANG LANGUAGE LC_* TZ TERM EDITOR PAGER DISPLAY HOSTNAME MAIL LD_*"
        " MALLOC_* GLIBC_TUNABLES POSIXLY_CORRECT XDG_*",
    ),
    (
        "the shell",
        "bash(1): shell variables; sh(1)",
        "IFS ENV CDPATH PS1 PS2 PS4 BASH BASH_* UID EUID PPID GROUPS DIRSTACK HISTFILE OPTIND OPTARG OPTERR REPLY SHLVL"
        " SHELLOPTS BASHOPTS FUNCNAME PIPESTATUS",
    ),
    (
        "programs that use the network",
        "curl(1); docs of requests and OpenSSL; docs of the AWS and Google Cloud SDKs",
        "HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_*"
        " AWS_* GOOGLE_* AZURE_*",
    ),
)
"""Who reads variables, where that is documented, and the names."""


def find_variable_reader(variable: str) -> str | None:
    """Return who reads a variable; None: it is not known that anything does.

    Example:
        >>> find_variable_reader("LANG"), find_variable_reader("LR")
        ('the system', None)
    """
    names, beginnings = _read_table()
    if variable in names:
        return names[variable]
    return next((reader for beginning, reader in beginnings if variable.startswith(beginning)), None)


@functools.cache
def _read_table() -> tuple[dict[str, str], tuple[tuple[str, str], ...]]:
    """Return the readers of whole names, and of beginnings of names."""
    pairs = [(name, reader) for reader, _, names in READERS for name in names.split()]
    whole = {name: reader for name, reader in pairs if not name.endswith("*")}
    return whole, tuple((name[:-1], reader) for name, reader in pairs if name.endswith("*"))
