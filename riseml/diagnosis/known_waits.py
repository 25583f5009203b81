"""Which calls of libraries are waits, and for what. A table: each row has stacks that it knows.

A row is found by a function and the file that it is in, because names such as `wait` and `get` are everywhere. Earlier
rows are more special: a `DataLoader` waits in a queue, and a queue in a lock.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence

from riseml.base.records import dataclass
from riseml.diagnosis.folding import is_own_code
from riseml.diagnosis.stacks import StackFrame


class WaitKind(enum.Enum):
    """For what a rank waits."""

    COLLECTIVE = "collective"  # for the other ranks, in an operation of all of them
    MEETING = "meeting"  # for other jobs that have not come yet
    SERVICE = "service"  # for requests: what a parameter server does all the time
    DATA = "data"  # for the next batch
    LOCK = "lock"
    FILE = "file"  # for a disk or a mounted folder
    NETWORK = "network"  # for an answer of a server
    CHILD = "child"  # for a process that it has started
    QUEUE = "queue"  # for another thread or process of the job
    SLEEP = "sleep"


@dataclass(frozen=True, slots=True)
class KnownWait:
    """Calls that wait for the same."""

    kind: WaitKind
    name: str  # of the library, for people: `DataLoader`
    file: re.Pattern[str]  # in the path of the file
    functions: re.Pattern[str]  # the whole name of the function
    examples: tuple[tuple[str, str], ...]  # functions and files that the row knows
    is_idle: bool = False  # True: the row counts only where the thread waits in the kernel


def find_wait(frames: Sequence[StackFrame], *, is_idle: bool) -> tuple[KnownWait, StackFrame] | None:
    """Return the row that a stack belongs to, with its outermost frame there; None: no row knows it.

    What the innermost line of the user's code has called is what it waits in. Calls outside of it only say where it was
    called from; a data loader that calls the user's code counts all the same.

    Args:
        frames: of one thread, the innermost first.
        is_idle: the thread waits in a call of the kernel.
    """
    own = next((at for at, frame in enumerate(frames) if is_own_code(frame)), len(frames))
    rows = [row for row in KNOWN_WAITS if is_idle or not row.is_idle]
    loaders = [row for row in rows if row.kind is WaitKind.DATA]
    return _find_row(frames[:own], rows) or _find_row(frames[own:], loaders)


def _find_row(frames: Sequence[StackFrame], rows: Sequence[KnownWait]) -> tuple[KnownWait, StackFrame] | None:
    for row in rows:
        for frame in reversed(frames):
            if row.functions.fullmatch(frame.function) and row.file.search(frame.file):
                return row, frame
    return None


def find_channel(channel: str) -> tuple[WaitKind, str] | None:
    """Return for what a process waits in a function of the kernel, in words; None: it is not known."""
    return next(((kind, words) for pattern, kind, words in _CHANNELS if pattern.match(channel)), None)


def _make_row(
    kind: WaitKind, name: str, file: str, functions: str, *examples: tuple[str, str], is_idle: bool = False
) -> KnownWait:
    return KnownWait(kind, name, re.compile(file), re.compile(f"(?:.*\\.)?(?:{functions})"), examples, is_idle)


_PACKAGES = "/usr/lib/python3/site-packages/"
_C10D = f"{_PACKAGES}torch/distributed/distributed_c10d.py"
_KERAS = f"{_PACKAGES}tensorflow/python/eager/context.py"

KNOWN_WAITS: tuple[KnownWait, ...] = (
    _make_row(
        WaitKind.MEETING,
        "torch.distributed",
        r"torch/distributed/(rendezvous|distributed_c10d|c10d_logger|elastic/rendezvous/.*)(\.py)?$",
        "init_process_group|rendezvous|_.*_rendezvous_handler|_create_c10d_store|_store_based_barrier|next_rendezvous",
        ("init_process_group", _C10D),
        ("_create_c10d_store", f"{_PACKAGES}torch/distributed/rendezvous.py"),
    ),
    _make_row(
        WaitKind.COLLECTIVE,
        "torch.distributed",
        r"torch/distributed/(distributed_c10d|_functional_collectives|nn/functional)\.py$",
        r"(_?all_|_?reduce|_?broadcast|_?gather|_?scatter|barrier|monitored_barrier|send|recv|batch_isend|wait).*",
        ("all_reduce", _C10D),
        ("barrier", _C10D),
        ("_all_gather_base", _C10D),
    ),
    _make_row(
        WaitKind.COLLECTIVE,
        "torch.distributed",
        r"torch/(nn/parallel/distributed|distributed/(fsdp|_composable|utils|algorithms)/?.*)\.py$",
        "_sync_.*|_distributed_.*|_verify_.*|_pre_forward|_post_backward.*|_unshard|_wait_.*|__init__",
        ("_sync_params", f"{_PACKAGES}torch/nn/parallel/distributed.py"),
        is_idle=True,
    ),
    _make_row(
        WaitKind.COLLECTIVE,
        "backward, where the gradients of all ranks meet",
        r"torch/(_tensor|autograd/(__init__|graph))\.py$",
        "backward|_engine_run_backward",
        ("backward", f"{_PACKAGES}torch/_tensor.py"),
        is_idle=True,
    ),
    _make_row(
        WaitKind.COLLECTIVE,
        "Horovod",
        r"horovod/",
        r"synchronize|(grouped_)?(allreduce|allgather|broadcast|reducescatter|alltoall)_?|barrier|join|broadcast_\w+"
        r"|allgather_object|_allreduce.*",
        ("synchronize", f"{_PACKAGES}horovod/torch/mpi_ops.py"),
        ("broadcast_object", f"{_PACKAGES}horovod/common/util.py"),
    ),
    _make_row(
        WaitKind.MEETING,
        "Horovod",
        r"horovod/",
        "init",
        ("init", f"{_PACKAGES}horovod/common/basics.py"),
    ),
    _make_row(
        WaitKind.MEETING,
        "JAX",
        r"jax/_src/distributed\.py$",
        "initialize",
        ("initialize", f"{_PACKAGES}jax/_src/distributed.py"),
    ),
    _make_row(
        WaitKind.COLLECTIVE,
        "JAX",
        r"jax/(_src/|experimental/)(multihost_utils|array|api|dispatch|interpreters/pxla)\.py$",
        "sync_global_devices|process_allgather|broadcast_one_to_all|block_until_ready|assert_equal|_value|__array__",
        ("sync_global_devices", f"{_PACKAGES}jax/experimental/multihost_utils.py"),
        ("_value", f"{_PACKAGES}jax/_src/array.py"),
        is_idle=True,
    ),
    _make_row(
        WaitKind.SERVICE,
        "the server of TensorFlow",
        r"tensorflow/python/training/server_lib\.py$",
        "join",
        ("join", f"{_PACKAGES}tensorflow/python/training/server_lib.py"),
        ("Server.join", f"{_PACKAGES}tensorflow/python/training/server_lib.py"),
    ),
    _make_row(
        WaitKind.MEETING,
        "TensorFlow",
        r"tensorflow/python/(eager/context|distribute/|training/(session_manager|server_lib|monitored_session))",
        r"ensure_initialized|enable_collective_ops|configure_collective_ops|_initialize_multi_worker|connect_to_cluster"
        r"|check_collective_ops_peer_health|_check_health|wait_for_session|prepare_session|_create_session"
        r"|recover_session|connect_to_remote_host",
        ("ensure_initialized", _KERAS),
        ("SessionManager.wait_for_session", f"{_PACKAGES}tensorflow/python/training/session_manager.py"),
    ),
    _make_row(
        WaitKind.DATA,
        "DataLoader",
        r"torch/utils/data/",
        "__next__|_next_data|_get_data|_try_get_data|_try_put_index|_shutdown_workers",
        ("__next__", f"{_PACKAGES}torch/utils/data/dataloader.py"),
        ("_BaseDataLoaderIter.__next__", f"{_PACKAGES}torch/utils/data/dataloader.py"),
    ),
    _make_row(
        WaitKind.DATA,
        "tf.data",
        r"tensorflow/python/(data/ops/iterator_ops|ops/gen_dataset_ops)\.py$",
        "__next__|_next_internal|iterator_get_next|get_next",
        ("_next_internal", f"{_PACKAGES}tensorflow/python/data/ops/iterator_ops.py"),
    ),
    _make_row(
        WaitKind.DATA,
        "the data set",
        r"(datasets|webdataset|petastorm)/",
        "__iter__|__next__|_iter_.*|__getitem__",
        ("__iter__", f"{_PACKAGES}datasets/iterable_dataset.py"),
    ),
    _make_row(
        WaitKind.COLLECTIVE,
        "TensorFlow",
        r"tensorflow/python/(eager/(execute|polymorphic_function/.*|def_function|function|context)|client/session)\.py$",
        "quick_execute|call_function|_call_flat|_call_tf_sessionrun|_do_call",
        ("quick_execute", f"{_PACKAGES}tensorflow/python/eager/execute.py"),
        ("BaseSession._call_tf_sessionrun", f"{_PACKAGES}tensorflow/python/client/session.py"),
        is_idle=True,
    ),
    _make_row(
        WaitKind.LOCK,
        "a lock on a file",
        r"(filelock/|portalocker/|fasteners/|lockfile/)",
        "acquire|_acquire|lock|__enter__",
        ("acquire", f"{_PACKAGES}filelock/_api.py"),
    ),
    _make_row(
        WaitKind.NETWORK,
        "the network",
        r"(urllib3?/|requests/|http/client\.py|/ssl\.py|/socket\.py|botocore/|s3transfer/|fsspec/|gcsfs/|s3fs/"
        r"|huggingface_hub/|httpx/|httpcore/|grpc/|psycopg|pymysql|redis/|wandb/|mlflow/)",
        r"urlopen|request|send|recv\w*|readinto|read|connect|create_connection|getresponse|_blocking|result|do_handshake"
        r"|init|log|get|post|execute",
        ("readinto", "/usr/lib/python3.11/socket.py"),
        ("create_connection", "/usr/lib/python3.11/socket.py"),
        ("urlopen", "/usr/lib/python3.11/urllib/request.py"),
    ),
    _make_row(
        WaitKind.FILE,
        "a file",
        r"torch/serialization\.py$|numpy/(lib/.*npyio.*|core/.*)\.py$|h5py/|safetensors/|/shutil\.py$|/pathlib\.py$"
        r"|/zipfile(/__init__)?\.py$|/tarfile\.py$",
        "save|load|_save|_load|_legacy_save|write|read|copyfileobj|copyfile|savez?|read_bytes|write_bytes|save_file"
        "|write_record|close|__exit__",
        ("save", f"{_PACKAGES}torch/serialization.py"),
        ("copyfileobj", "/usr/lib/python3.11/shutil.py"),
    ),
    _make_row(
        WaitKind.CHILD,
        "a process that it has started",
        r"(/subprocess\.py|multiprocessing/(popen_\w+|process|pool)\.py|concurrent/futures/process\.py)$",
        "wait|_wait|_try_wait|communicate|_communicate|poll|join|get|map|result",
        ("_try_wait", "/usr/lib/python3.11/subprocess.py"),
        ("join", "/usr/lib/python3.11/multiprocessing/process.py"),
    ),
    _make_row(
        WaitKind.QUEUE,
        "another thread or process of its job",
        r"(/queue\.py|multiprocessing/(queues|connection|synchronize|managers)\.py|concurrent/futures/\w+\.py"
        r"|/selectors\.py|asyncio/\w+\.py)$",
        "get|put|_poll|poll|wait|recv|recv_bytes|_recv|_recv_bytes|acquire|result|select|__enter__|run_forever",
        ("get", "/usr/lib/python3.11/queue.py"),
        ("_recv", "/usr/lib/python3.11/multiprocessing/connection.py"),
    ),
    _make_row(
        WaitKind.LOCK,
        "a lock",
        r"/threading\.py$",
        "acquire|wait|_wait_for_tstate_lock|join|__enter__",
        ("wait", "/usr/lib/python3.11/threading.py"),
        ("join", "/usr/lib/python3.11/threading.py"),
    ),
)

_CHANNELS: tuple[tuple[re.Pattern[str], WaitKind, str], ...] = tuple(
    (re.compile(pattern), kind, words)
    for pattern, kind, words in (
        (r"(flock|fcntl_setlk|locks_lock|posix_lock|do_lock_file)", WaitKind.LOCK, "a lock on a file"),
        (r"(nfs|rpc_wait|fuse|request_wait_answer|cifs|smb|ceph|lustre|autofs|afs)", WaitKind.FILE, "a mounted folder"),
        (r"(io_schedule|folio_wait|wait_on_page|blk_|jbd2|ext4|xfs|btrfs|wait_on_buffer)", WaitKind.FILE, "a disk"),
        (r"(tcp_|inet_|sk_wait|unix_stream|wait_for_connect|skb_wait)", WaitKind.NETWORK, "a connection"),
        (r"(hrtimer_nanosleep|do_nanosleep|common_nsleep)", WaitKind.SLEEP, "time to pass"),
        (r"futex", WaitKind.LOCK, "a lock or another thread"),
        (r"(pipe_read|pipe_write|anon_pipe)", WaitKind.QUEUE, "a pipe"),
        (r"(do_wait|kernel_wait|wait_consider)", WaitKind.CHILD, "a process that it has started"),
    )
)
"""The beginnings of functions of the kernel in which processes sleep."""
