"""Failures of what the machine provides: memory, disks, GPUs, files, ports, signals."""

from __future__ import annotations

from riseml.base.states import Reason
from riseml.control.advice.known_failure import KnownFailure

_DRAIN = "drain the host with `riseml pool drain`"
_IN_CODE = "run the job with `CUDA_LAUNCH_BLOCKING: 1` in `train.env` to see where"
_ENDED_FIRST = "the program ended while the GPU worked for it: its own error is in the lines before"
_XIDS = {
    "13": f"a kernel of the program accessed memory outside its arrays: {_IN_CODE}",
    "31": f"a kernel of the program used an address that it does not have: {_IN_CODE}",
    "43": _ENDED_FIRST,
    "45": _ENDED_FIRST,
    "48": f"its memory has an error that cannot be corrected: {_DRAIN}, and reset the GPU",
    "62": f"its controller has halted: {_DRAIN}, and reset the GPU",
    "63": "it retires a part of its memory: reset the GPU when no job uses it",
    "64": f"it cannot retire a bad part of its memory: {_DRAIN}, and have the GPU checked",
    "74": f"an NVLink has an error: {_DRAIN}, and look at `nvidia-smi nvlink -e` there",
    "79": f"it has fallen off the bus: {_DRAIN}, check power and cooling, and restart it",
    "94": "its memory has an error, which ended this job alone: start it again, and reset the GPU when no job uses it",
    "95": f"its memory has an error that may reach other jobs: {_DRAIN}, and reset the GPU",
    "119": f"its firmware does not answer the driver: {_DRAIN}, and restart it",
    "120": f"its firmware has failed: {_DRAIN}, and restart it",
}
"""Numbers of errors that the driver reports -> what each says of the GPU (NVIDIA's catalogue of XID errors)."""

_OUT_OF_MEMORY = frozenset({Reason.OUT_OF_MEMORY})

MACHINE_FAILURES: tuple[KnownFailure, ...] = (
    KnownFailure(
        "out-of-memory-limit",
        "the job reached its limit of {limit} of memory: raise `mem` in `train.limits`, or use smaller batches or"
        " fewer loading processes",
        reasons=_OUT_OF_MEMORY,
    ),
    KnownFailure(
        "out-of-memory",
        "the job took more memory than its host can give ({mem} were guaranteed): ask for more with `mem` in"
        " `train.resources`, or use smaller batches or fewer loading processes",
        reasons=_OUT_OF_MEMORY,
    ),
    KnownFailure(
        "gpu-out-of-memory",
        "the memory of the GPU is full: use smaller batches or a smaller model, or ask for a GPU with more memory",
        patterns=(
            r"CUDA out of memory",
            r"CUDA_ERROR_OUT_OF_MEMORY",
            r"OOM when allocating tensor.*GPU:\d",
            r"CUBLAS_STATUS_ALLOC_FAILED",
        ),
    ),
    KnownFailure(
        "tensor-out-of-memory",
        "a tensor is larger than the memory that the job gets: use smaller batches or a smaller model, or ask for"
        " more with `mem` in `train.resources`",
        patterns=(
            r"OOM when allocating tensor",
            r"Unable to allocate \S+ \w+ for an array",
            r"DefaultCPUAllocator: can't allocate memory",
        ),
    ),
    KnownFailure(
        "memory-error",
        "the job could not get the memory that it asked for: use smaller batches, or ask for more with `mem` in"
        " `train.resources`",
        patterns=(r"^(?:\w+\.)*_?\w*MemoryError\b", r"\[Errno 12\] Cannot allocate memory", r"std::bad_alloc"),
    ),
    KnownFailure(
        "no-gpu",
        "the job sees no GPU: ask for it with `gpus: 1` in `train.resources`, and check with `riseml system info -l`"
        " that a host has one",
        patterns=(  # TensorFlow prints a failed cuInit whenever it starts without a GPU
            r"^(?!.*failed call to cuInit).*(?:no CUDA-capable device|CUDA_ERROR_NO_DEVICE)",
            r"Found no NVIDIA driver|No CUDA GPUs are available|libcuda reported.*no device",
            r"Could not satisfy device specification '[^']*device:GPU:\d+'\..*Supported device types \[CPU\]",
        ),
    ),
    KnownFailure(
        "torch-without-cuda",
        "the PyTorch of the job is built for processors alone, so it uses no GPU: choose an image or a version that is"
        " built for CUDA and ask for `gpus: 1` in `train.resources`, or let the code use the device `cpu`",
        patterns=(r"Torch not compiled with CUDA enabled",),
    ),
    KnownFailure(
        "saved-on-gpu",
        'the file was saved on a GPU, and the job has none: write `torch.load(..., map_location="cpu")`, or ask for'
        " `gpus: 1` in `train.resources`",
        patterns=(r"Attempting to deserialize object on a CUDA device but torch\.cuda\.is_available\(\) is False",),
    ),
    KnownFailure(
        "gpu-driver",
        "the host's NVIDIA driver does not fit the CUDA of the image: choose an image with an older CUDA, or update"
        " the driver of the host",
        patterns=(
            r"CUDA driver version is insufficient|driver on your system is too old|unsatisfied condition: cuda",
            r"forward compatibility was attempted on non supported HW",
        ),
    ),
    KnownFailure(
        "gpu-kernel",
        "the libraries in the image are not built for this kind of GPU: choose an image with a version that is,"
        " usually a newer one",
        patterns=(r"no kernel image is available for execution on the device",),
    ),
    KnownFailure(
        "gpu-xid",
        "the driver reported XID {name} of the GPU: {known}",
        patterns=(r"NVRM: Xid \([^)]{1,40}\): (?P<name>\d+)\b", r"(?i)\bxid[ =:]+(?P<name>\d{1,3})\b"),
        replacements=_XIDS,
    ),
    KnownFailure(
        "gpu-lost",
        "the GPU no longer answers: drain its host with `riseml pool drain`, look for `Xid` in the output of `dmesg`"
        " there, and restart it",
        patterns=(
            r"(?i)GPU has fallen off the bus|GPU is lost",
            r"Unable to determine the device handle for GPU|uncorrectable (?:NVLink|ECC) error",
        ),
    ),
    KnownFailure(
        "gpu-runtime",
        "the engine of the host cannot give GPUs to containers: install the NVIDIA Container Toolkit there, then run"
        " `riseml pool check`",
        patterns=(r"could not select device driver .*gpu|nvidia-container-cli: initialization error",),
    ),
    KnownFailure(
        "shared-memory",
        "/dev/shm is too small for the data that processes of the job share: raise `shm_size` under `train`, or use"
        " fewer loading processes",
        patterns=(
            r"out of shared memory|insufficient shared memory",
            r"No space left on device.*/dev/shm|/dev/shm.*No space left on device",
            r"unable to (?:open|write to|mmap) .*shared memory",
        ),
    ),
    KnownFailure(
        "process-killed",
        "a process that the job started was killed (SIGKILL), probably because memory ran out: use fewer processes or"
        " smaller batches, or ask for more with `mem` in `train.resources`",
        patterns=(
            r"DataLoader worker \(pid[^)]*\) is killed by signal: Killed",
            r"process \d+ terminated with signal SIGKILL",
        ),
    ),
    KnownFailure(
        "process-crashed",
        "native code crashed in a process that the job started (SIGSEGV): set `PYTHONFAULTHANDLER: 1` in `train.env` to"
        " see where, or load the data without such processes (`num_workers=0`)",
        patterns=(
            r"DataLoader worker \(pid[^)]*\) is killed by signal: Segmentation fault",
            r"ERROR: Unexpected segmentation fault encountered in worker",
            r"process \d+ terminated with signal SIGSEGV",
        ),
    ),
    KnownFailure(
        "too-long",
        "an argument or a variable is longer than the kernel takes (131,071 bytes each): put the text into a file of"
        " the project, and give the job the name of the file",
        patterns=(r"(?i)argument list too long",),
    ),
    KnownFailure(
        "no-space",
        "a disk is full: free some space where the job writes (`riseml system clean` removes what riseml no longer"
        " needs), or write less",
        patterns=(r"No space left on device|ENOSPC",),
    ),
    KnownFailure(
        "quota",
        "your share of the disk is used up (quota): remove files where the job writes, or ask for a larger quota",
        patterns=(r"Disk quota exceeded",),
    ),
    KnownFailure(
        "read-only-data",
        "the job may only read {name}: write to the folder in OUTPUT_DIR instead",
        patterns=(
            r"Read-only file system: '(?P<name>/data[^']*)'",
            r"(?P<name>/data/[^\s']*)'?: Read-only file system",
        ),
    ),
    KnownFailure(
        "read-only",
        "{name} can only be read: write to the folder in OUTPUT_DIR instead",
        patterns=(
            r"Read-only file system: '(?P<name>[^']+)'",
            r"(?P<name>/[^\s']*)'?: Read-only file system",
        ),
    ),
    KnownFailure(
        "mounted-folder",
        "{name} is a mount, which no job can remove or rename: empty it instead, for example with"
        " `find {name} -mindepth 1 -delete`",
        patterns=(  # the kernel says EACCES to users who may not write in /
            r"Device or resource busy: '(?P<name>/[^']+)'",
            r"'(?P<name>/[^']+)'.*: Device or resource busy",
            r"PermissionError: \[Errno 13\] Permission denied: '(?P<name>/output)'$",
            r"(?:remove|move) '(?P<name>/output)'.*: Permission denied",
        ),
    ),
    KnownFailure(
        "folder-exists",
        "{name} is there already, as OUTPUT_DIR always is, with the files of an earlier attempt: use"
        " `os.makedirs(path, exist_ok=True)` or `mkdir -p`",
        patterns=(
            r"FileExistsError: \[Errno 17\] File exists: '(?P<name>[^']+)'$",
            r"mkdir: cannot create directory .(?P<name>[^']+).: File exists",
        ),
    ),
    KnownFailure(
        "output-permission",
        "the job may not write to {name}: check on the host that the output folder belongs to the user who ran this,"
        " and that no earlier program made it as another user",
        patterns=(
            r"Permission denied: '(?P<name>/output[^']*)'",
            r"(?P<name>/output[^\s']*)'?: Permission denied",
        ),
    ),
    KnownFailure(
        "permission",
        "the job may not use {name}: jobs run as you and not as root; write to the folder in OUTPUT_DIR, or give you"
        " the right to it",
        patterns=(
            r"PermissionError: \[Errno 13\] Permission denied: '(?P<name>/[^.'][^']*)'",
            r"cannot (?:create|open|touch|write|access)\S* .*'?(?P<name>/[^.:'][^:']*)'?: Permission denied",
        ),
    ),
    KnownFailure(
        "address-in-use",
        "another process already uses the port: take a free one, or the address that TF_CONFIG gives; of two"
        " experiments on `network: host`, each needs its own",
        patterns=(
            r"(?i)address already in use|EADDRINUSE",
            r"Failed to add port to server: No address added|Could not start gRPC server",
        ),
    ),
    KnownFailure(
        "low-port",
        "the job may not do this; probably it opened a port below 1024, which only root may: use a larger one",
        patterns=(r"PermissionError: \[Errno 13\] Permission denied$",),
    ),
    KnownFailure(
        "too-many-files",
        "the job has more files and connections open than it may: close them, use fewer loading processes, or with"
        " PyTorch `torch.multiprocessing.set_sharing_strategy('file_system')`",
        patterns=(r"Too many open files",),
    ),
    KnownFailure(
        "too-many-processes",
        "the job has more processes and threads than it may: use fewer loading processes, and set `OMP_NUM_THREADS`"
        " in `train.env`",
        patterns=(
            r"can't start new thread",
            r"(?:fork|clone): .*Resource temporarily unavailable|Cannot fork|pthread_create failed",
        ),
    ),
    KnownFailure(
        "processor-too-old",
        "the host's processor lacks instructions ({name}) that a library was built for: choose another host, or a"
        " version of the library that is built without them",
        patterns=(r"was compiled to use (?P<name>[\w.]+(?:, [\w.]+)*) instructions, but these aren't available",),
    ),
    KnownFailure(
        "illegal-instruction",
        "the processor does not know an instruction of a library (SIGILL); the library is probably built for a newer"
        " one, for example with AVX: choose another host or another version of the library",
        codes=frozenset({132}),
    ),
    KnownFailure(
        "bus-error",
        "a process could not reach its memory (SIGBUS); /dev/shm is probably too small: raise `shm_size` under"
        " `train`, or use fewer loading processes",
        codes=frozenset({135}),
    ),
    KnownFailure(
        "stack-of-native-code",
        "native code ended the program: the first line of the stack behind `Fatal Python error` is the call that led"
        " there; look at what it was given, and check that the versions of the native packages fit each other",
        patterns=(r"^Fatal Python error: (?:Segmentation fault|Aborted|Floating)", r"\(most recent call first\):$"),
        codes=frozenset({134, 136, 139}),
    ),
    KnownFailure(
        "segmentation-fault",
        "native code crashed (SIGSEGV), which Python cannot report: set `PYTHONFAULTHANDLER: 1` in `train.env` to see"
        " where, and check that the versions of the native packages fit each other",
        codes=frozenset({139}),
    ),
    KnownFailure(
        "abort",
        "native code gave up (SIGABRT): its reason is usually in the lines before; set `PYTHONFAULTHANDLER: 1` in"
        " `train.env` to see where",
        codes=frozenset({134}),
    ),
    KnownFailure(
        "killed",
        "another process killed the job (SIGKILL); probably the host ran out of memory: ask for more with `mem` in"
        " `train.resources`, so that fewer jobs share the host",
        codes=frozenset({137}),
    ),
)
