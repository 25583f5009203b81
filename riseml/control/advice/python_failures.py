"""Failures of Python code: modules, versions of Python and of libraries, arguments."""

from __future__ import annotations

from riseml.control.advice.known_failure import KnownFailure
from riseml.control.advice.package_names import PYPI_PACKAGES, PYTHON_2_MODULES, REMOVED_MODULES, YOUNG_MODULES

_NO_MODULE = r"No module named '?(?P<name>[\w]+)(?P<rest>[\w.]*)"
_NUMPY_2 = r"module 'numpy' has no attribute '(?P<name>bool|int|float|object|complex|str|typeDict)'"
_TF = r"module '(?:tensorflow|tensorflow\._api\.v2\.\w+)' has no attribute '(?P<name>{})'"
_TF_1_NAMES = (
    "placeholder|Session|InteractiveSession|app|flags|get_variable|variable_scope|global_variables_initializer"
    "|ConfigProto|GPUOptions|logging|set_random_seed|log|to_float|reset_default_graph|truncated_normal"
    "|random_normal|random_uniform|get_default_graph|Summary|gfile|AdamOptimizer|GradientDescentOptimizer"
)

PYTHON_FAILURES: tuple[KnownFailure, ...] = (
    KnownFailure(
        "tensorflow-contrib",
        "the code uses `tf.{name}`, which only TensorFlow 1 has: ask for the version with"
        " `tensorflow: {{version: 1.15.5}}` under `train`, or port the code",
        patterns=(
            r"No module named 'tensorflow\.(?P<name>contrib|examples)",
            r"module 'tensorflow' has no attribute '(?P<name>contrib)'",
        ),
    ),
    KnownFailure(
        "tensorflow-1",
        "the code uses `tf.{name}`, which TensorFlow 2 does not have: ask for version 1 with `tensorflow: {{version:"
        " 1.15.5}}` in riseml.yml, or import `tensorflow.compat.v1` as tf",
        patterns=(_TF.format(_TF_1_NAMES),),
    ),
    KnownFailure(
        "python-2",
        "the code is written for Python 2 (`{name}` is `{known}` in Python 3): port it with `2to3`, or"
        " choose an image that has Python 2",
        patterns=(_NO_MODULE,),
        replacements=PYTHON_2_MODULES,
    ),
    KnownFailure(
        "python-2-print",
        "the code is written for Python 2 (`print` without brackets): port it with `2to3`, or choose an image that"
        " has Python 2",
        patterns=(r"SyntaxError: Missing parentheses in call to 'print'",),
    ),
    KnownFailure(
        "python-too-old-module",
        "the module `{name}` needs Python {known} or newer: choose an image with a newer Python",
        patterns=(_NO_MODULE,),
        replacements=YOUNG_MODULES,
    ),
    KnownFailure(
        "module-removed",
        "Python 3.12 and newer no longer have `{name}`: add `pip install {known}` to `train.install`, or choose an"
        " image with an older Python",
        patterns=(_NO_MODULE,),
        replacements=REMOVED_MODULES,
    ),
    KnownFailure(
        "missing-known-module",
        "`{name}` is not installed in the environment: add `pip install {known}` to `train.install`",
        patterns=(_NO_MODULE,),
        replacements=PYPI_PACKAGES,
    ),
    KnownFailure(
        "missing-module",
        "the job has no module `{name}`: when it is a file of your project, check that .risemlignore and .gitignore"
        " do not leave it out; otherwise add the package that brings it to `train.install`",
        patterns=(_NO_MODULE,),
    ),
    KnownFailure(
        "python-too-old",
        "`{name}` needs another Python ({needs}) than the image has: choose an image with such a Python, or another"
        " version of the package",
        patterns=(r"Package '(?P<name>[^']+)' requires a different Python: \S+ not in '(?P<needs>[^']+)'",),
    ),
    KnownFailure(
        "python-too-old-types",
        "this syntax of types probably needs a newer Python than the image has: choose an image with a newer Python,"
        " or write `from __future__ import annotations` at the top of the file",
        patterns=(r"TypeError: (?:'type' object is not subscriptable|unsupported operand type\(s\) for \|: 'type')",),
    ),
    KnownFailure(
        "syntax-error",
        "Python cannot read the code: correct the line that it names; `python -m compileall -q .` finds such errors"
        " before a run",
        patterns=(r"^\s*(?:SyntaxError|IndentationError|TabError): ",),
    ),
    KnownFailure(
        "numpy-2-binary",
        "a package was built for NumPy 1 and the environment has NumPy 2: add `pip install 'numpy<2'` to"
        " `train.install`, or use a newer version of that package",
        patterns=(
            r"compiled using NumPy 1\.x cannot be run in|numpy\.dtype size changed, may indicate binary incompat",
        ),
    ),
    KnownFailure(
        "numpy-names",
        "NumPy 1.24 and newer have no `np.{name}`: write the type of Python instead, or add `pip install"
        " 'numpy<1.24'` to `train.install`",
        patterns=(_NUMPY_2,),
    ),
    KnownFailure(
        "protobuf",
        "a package was built for an older protobuf: add `pip install 'protobuf<3.21'` to `train.install`",
        patterns=(r"TypeError: Descriptors cannot be? created directly",),
    ),
    KnownFailure(
        "arguments",
        "the program does not know these arguments: compare `train.run` with its `--help` ({name})",
        patterns=(r"error: (?P<name>unrecognized arguments: .+)",),
    ),
    KnownFailure(
        "arguments-missing",
        "the program needs arguments that it does not get: add them to `train.run` ({name})",
        patterns=(r"error: (?P<name>the following arguments are required: .+)",),
    ),
    KnownFailure(
        "argument-value",
        "the program refuses an argument: correct it in `train.run` ({name})",
        patterns=(r"error: (?P<name>argument .+: (?:invalid|expected) .+)",),
    ),
    KnownFailure(
        "weights-only",
        "PyTorch 2.6 and newer load nothing but tensors and plain values: write `torch.load(..., weights_only=False)`"
        " for a file that you trust, or ask for an older PyTorch",
        patterns=(r"Weights only load failed",),
    ),
    KnownFailure(
        "no-nccl",
        "the PyTorch of the job is built without NCCL, as those for processors are: ask for an image or a version that"
        ' is built for CUDA, or write `init_process_group("gloo")`',
        patterns=(r"Distributed package doesn't have NCCL built in|NCCL support is not compiled",),
    ),
    KnownFailure(
        "torch-alone",
        "the code joins other processes, and the job has none: write `distributed` under `pytorch`, or call"
        " `init_process_group` only where {name} is set",
        patterns=(r"environment variable (?P<name>RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT) expected, but not set",),
    ),
    KnownFailure(
        "no-input",
        "the code asks for input, and a job has no terminal: give the answer as an argument in `train.run` or as a"
        " variable in `train.env`",
        patterns=(r"EOFError: EOF when reading a line",),
    ),
    KnownFailure(
        "variable",
        "the code reads `{name}`, probably a variable that is not set in the job: name it in `train.env`",
        patterns=(r"^KeyError: '(?P<name>[A-Z][A-Z0-9]*_[A-Z0-9_]+)'$",),
    ),
    KnownFailure(
        "wandb",
        "Weights & Biases has no key in the job: write `track: [tensorboard, wandb]` under `train`, and its runs become"
        " metrics here without a key, or `env: [WANDB_API_KEY]`",
        patterns=(r"wandb.*api_key not configured|No API key configured\. Use `wandb login`",),
    ),
    KnownFailure(
        "no-display",
        "the code opens a window, and a job has no display: set `MPLBACKEND: Agg` in `train.env`, and save pictures"
        " to files",
        patterns=(r"no display name and no \$DISPLAY|could not connect to display|cannot open display",),
    ),
    KnownFailure(
        "keras-3-strategy",
        "Keras 3 has no `fit` for this strategy of TensorFlow: add `pip install --no-deps tf-keras` in the version of"
        ' TensorFlow to `train.install`, and `TF_USE_LEGACY_KERAS: "1"` to `train.env`',
        patterns=(
            r"ValueError: Attempt to convert a value \(PerReplica:",
            r"ValueError: To use this dataset, you need to pass this dataset to ClusterCoordinator",
        ),
    ),
    KnownFailure(
        "tf-config",
        "TensorFlow cannot use TF_CONFIG ({name}): `riseml tfconfig` shows what each job reads; the code must not"
        " change it, and `tensorflow.distributed` must name the jobs that the strategy needs",
        patterns=(
            r"ValueError: (?P<name>.*(?:not found in cluster_spec|exceeds the maximum id of|task_type.*cluster).*)",
        ),
    ),
)
