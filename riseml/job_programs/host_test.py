"""What `riseml system test` runs in a job: it measures a host, and checks that what it stores and computes is right.

    host_test.py host OPTIONS      cores, memory, disks and GPUs of the host on which it runs, then stress
    host_test.py listen            answers the connections of `link`, at ROLE_PORT
    host_test.py link OPTIONS      latency and rate of the network to LISTENER_ADDRESS
    host_test.py allreduce RANK SIZE PORT    one rank of an all-reduce over the GPUs, with torch and NCCL

It prints one line: `riseml system test: ` and a JSON object. It needs Python 3.7 and nothing else. GPUs are measured
through the driver's own libraries (libcuda, libnvidia-ml), which the container runtime brings into every container that
has GPUs.
"""

from __future__ import annotations

import array
import ctypes
import hashlib
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, NamedTuple

PREFIX = "riseml system test: "
_MIB = 1 << 20
_PINGS = 300
_PRODUCT_SIZE = 2048  # rows and columns of the matrices, a multiple of _TILE
_TILE = 16  # threads of a block in each direction
_PATTERNS = (0x55555555, 0xAAAAAAAA)
_MEMORY_SHARE = 0.9  # share of the free memory of a GPU that is written and read
_REDUCED = 1 << 26  # numbers of the all-reduce

# Integers small enough that 32-bit floats add them without rounding: (row + at) % 5 times (at * column) % 3.
_PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry product(.param .u64 left, .param .u64 right, .param .u64 result, .param .u32 size)
{
    .reg .pred %p<2>;
    .reg .b32 %r<16>;
    .reg .f32 %f<4>;
    .reg .b64 %d<12>;
    ld.param.u64 %d1, [left];
    ld.param.u64 %d2, [right];
    ld.param.u64 %d3, [result];
    ld.param.u32 %r1, [size];
    cvta.to.global.u64 %d1, %d1;
    cvta.to.global.u64 %d2, %d2;
    cvta.to.global.u64 %d3, %d3;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    mov.u32 %r6, %ctaid.y;
    mov.u32 %r7, %ntid.y;
    mov.u32 %r8, %tid.y;
    mad.lo.s32 %r9, %r6, %r7, %r8;
    mul.lo.s32 %r10, %r9, %r1;
    mul.wide.s32 %d4, %r10, 4;
    add.s64 %d4, %d1, %d4;
    mul.wide.s32 %d5, %r5, 4;
    add.s64 %d5, %d2, %d5;
    mul.wide.s32 %d6, %r1, 4;
    mov.f32 %f1, 0f00000000;
    mov.u32 %r11, 0;
next:
    ld.global.f32 %f2, [%d4];
    ld.global.f32 %f3, [%d5];
    fma.rn.f32 %f1, %f2, %f3, %f1;
    add.s64 %d4, %d4, 4;
    add.s64 %d5, %d5, %d6;
    add.s32 %r11, %r11, 1;
    setp.lt.s32 %p1, %r11, %r1;
    @%p1 bra next;
    add.s32 %r12, %r10, %r5;
    mul.wide.s32 %d7, %r12, 4;
    add.s64 %d7, %d3, %d7;
    st.global.f32 [%d7], %f1;
    ret;
}
.visible .entry compare(.param .u64 memory, .param .u64 count, .param .u32 pattern, .param .u64 wrong)
{
    .reg .pred %p<3>;
    .reg .b32 %r<12>;
    .reg .b64 %d<12>;
    ld.param.u64 %d1, [memory];
    ld.param.u64 %d2, [count];
    ld.param.u32 %r1, [pattern];
    ld.param.u64 %d3, [wrong];
    cvta.to.global.u64 %d1, %d1;
    cvta.to.global.u64 %d3, %d3;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mov.u32 %r5, %nctaid.x;
    mad.lo.s32 %r6, %r2, %r3, %r4;
    mul.lo.s32 %r7, %r5, %r3;
    cvt.u64.u32 %d4, %r6;
    cvt.u64.u32 %d5, %r7;
    shl.b64 %d6, %d4, 2;
    add.s64 %d6, %d1, %d6;
    shl.b64 %d7, %d5, 2;
    mov.u32 %r10, 0;
next:
    setp.ge.u64 %p1, %d4, %d2;
    @%p1 bra done;
    ld.global.u32 %r8, [%d6];
    setp.ne.u32 %p2, %r8, %r1;
    @%p2 add.u32 %r10, %r10, 1;
    add.s64 %d6, %d6, %d7;
    add.s64 %d4, %d4, %d5;
    bra next;
done:
    setp.eq.u32 %p1, %r10, 0;
    @%p1 ret;
    red.global.add.u32 [%d3], %r10;
    ret;
}
\0"""


def measure_cores(seconds: float, cores: int) -> float:
    """Return the MB/s that each core hashes while all of them do; one process for each core."""
    readers = []
    for _ in range(cores):
        reader, writer = os.pipe()
        if os.fork() == 0:
            block = bytes(_MIB)
            end = time.monotonic() + seconds
            rounds = 0
            while time.monotonic() < end:
                hashlib.sha256(block).digest()
                rounds += 1
            os.write(writer, str(rounds).encode())
            os._exit(0)
        os.close(writer)
        readers.append(reader)
    counts = []
    for reader in readers:
        with os.fdopen(reader, "rb") as file:
            counts.append(int(file.read() or b"0"))
        os.wait()
    return sum(counts) * _MIB / 1e6 / seconds / cores


def measure_memory(seconds: float, mib: int) -> tuple[float, int]:
    """Return the MB/s at which memory is written and read, and the number of MiB that did not keep what was written."""
    memory = memoryview(bytearray(mib * _MIB))
    block = os.urandom(_MIB)
    wrong = moved = 0
    begin = time.monotonic()
    while True:
        for at in range(mib):
            memory[at * _MIB : (at + 1) * _MIB] = block
        for at in range(mib):
            wrong += memory[at * _MIB : (at + 1) * _MIB] != block
        moved += 2 * mib
        spent = time.monotonic() - begin
        if spent >= seconds:
            return moved * _MIB / 1e6 / spent, wrong


class StressOrder(NamedTuple):
    """How a host is stressed: never above what the job asked for."""

    rounds: int  # 0: it is not stressed
    seconds: float  # of each round
    cores: float  # that compute: 1.5 are two processes that compute three quarters of the time
    mib: int  # of memory that are held and checked


def stress_host(order: StressOrder) -> dict[str, Any]:
    """Compute in processes that hold memory, round by round; return the cores and the memory that they reached."""
    workers = max(1, math.ceil(order.cores))
    mib = max(1, order.mib // workers)
    computed = passed = 0.0
    wrong = 0
    peak = 0
    failures: list[str] = []
    for number in range(1, order.rounds + 1):
        begin = time.monotonic()
        children = [_start_load(order.seconds, order.cores / workers, mib) for _ in range(workers)]
        memory = 0
        used = 0.0
        for pid, reader in children:
            with os.fdopen(reader, "rb") as file:
                answer = file.read().split()
            _, status, use = os.wait4(pid, 0)
            used += use.ru_utime + use.ru_stime
            if len(answer) == 2:
                memory += int(answer[0])
                wrong += int(answer[1])
            else:
                failures.append(f"signal {status}" if 0 < status < 128 else f"exit code {status >> 8}")
        spent = time.monotonic() - begin
        computed += used
        passed += spent
        peak = max(peak, memory)
        print(f"stress {number} of {order.rounds}: {used / spent:.2f} cores, {memory} MiB", flush=True)
    return {**order._asdict(), "reached": computed / passed, "held": peak, "wrong": wrong, "ended": failures}


def _start_load(seconds: float, share: float, mib: int) -> tuple[int, int]:
    """Start a process that loads a part of one core and holds memory; return it and where it writes what came of it."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.write(writer, f"{mib} {load_core(seconds, share, mib)}".encode())
            code = 0
        finally:  # also without memory: the parent goes on alone
            os._exit(code)
    os.close(writer)
    return pid, reader


def load_core(seconds: float, share: float, mib: int) -> int:
    """Hold memory and compute over it for a share of the time; return the MiB that did not keep what was written."""
    block = os.urandom(_MIB)
    digest = hashlib.sha256(block).digest()
    begin = time.monotonic()
    used = time.process_time()
    memory = memoryview(bytearray(mib * _MIB))
    for at in range(mib):
        memory[at * _MIB : (at + 1) * _MIB] = block
    pause = threading.Event()  # nobody sets it
    wrong = at = 0
    while time.monotonic() - begin < seconds:
        part = memory[at * _MIB : (at + 1) * _MIB]
        wrong += hashlib.sha256(part).digest() != digest
        part[:] = block
        at = (at + 1) % mib
        ahead = (time.process_time() - used) / share - (time.monotonic() - begin)
        if share < 1 and ahead > 0:
            pause.wait(min(ahead, seconds))
    return wrong


def measure_folder(folder: str, mib: int) -> tuple[float, float, bool]:
    """Return the MB/s of writing to a folder until the disk has it, those of reading it, and whether it is the same."""
    block = os.urandom(_MIB)
    handle, path = tempfile.mkstemp(prefix="riseml-test-", dir=folder)
    try:
        with os.fdopen(handle, "r+b", buffering=0) as file:
            begin = time.monotonic()
            for _ in range(mib):
                file.write(block)
            os.fsync(file.fileno())
            written = mib * _MIB / 1e6 / (time.monotonic() - begin)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            file.seek(0)
            begin = time.monotonic()
            right = sum(file.read(_MIB) == block for _ in range(mib)) == mib
            return written, mib * _MIB / 1e6 / (time.monotonic() - begin), right
    finally:
        os.unlink(path)


def leave_file(folder: str) -> str:
    """Write a file that the user's command reads from outside, and return the SHA-256 of its content."""
    content = os.urandom(1 << 16)
    with open(os.path.join(folder, "system-test"), "wb") as file:
        file.write(content)
    return hashlib.sha256(content).hexdigest()


class CudaError(Exception):
    """A call of the driver failed."""


class Cuda:
    """The calls of libcuda that the test needs."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver; a failure is an error with its name."""
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(code, ctypes.byref(text))
            raise CudaError(f"{name}: {(text.value or str(code).encode()).decode()}")

    def count(self) -> int:
        """Return the number of GPUs that the job has."""
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        return count.value

    def describe(self, index: int) -> tuple[ctypes.c_int, str, str]:
        """Return the device, its name and its UUID."""
        device = ctypes.c_int()
        name = ctypes.create_string_buffer(128)
        uuid = ctypes.create_string_buffer(16)
        self.call("cuDeviceGet", ctypes.byref(device), index)
        self.call("cuDeviceGetName", name, 128, device)
        self.call("cuDeviceGetUuid", uuid, device)
        digits = uuid.raw.hex()
        parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
        return device, name.value.decode("utf-8", "replace"), "GPU-" + "-".join(parts)

    def allocate(self, size: int) -> ctypes.c_uint64:
        """Return the address of new memory of the GPU, in bytes."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def start(
        self, function: ctypes.c_void_p, grid: tuple[int, int, int], block: tuple[int, int, int], *arguments: Any
    ) -> None:
        """Start a kernel. Its arguments are values of ctypes."""
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(argument) for argument in arguments])
        self.call("cuLaunchKernel", function, *grid, *block, 0, None, pointers, None)


def measure_gpu(cuda: Cuda, index: int, seconds: float) -> dict[str, Any]:
    """Return what one GPU is and does: its product, its memory, and what the driver says of it under load."""
    device, model, uuid = cuda.describe(index)
    errors: list[str] = []
    report: dict[str, Any] = {"index": index, "model": model, "uuid": uuid, "errors": errors}
    context = ctypes.c_void_p()
    module = ctypes.c_void_p()
    try:
        cuda.call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
        cuda.call("cuModuleLoadData", ctypes.byref(module), _PTX)
        rate, wrong = multiply(cuda, module, seconds)
        report["gflops"] = rate
        if wrong:
            errors.append(f"{wrong} of {_PRODUCT_SIZE} rows of a product are wrong")
        report.update(read_driver(uuid))
        report["memory_mib"], report["memory_mb_s"], wrong = check_memory(cuda, module)
        if wrong:
            errors.append(f"{wrong} words of its memory changed")
    except CudaError as error:
        errors.append(str(error))
    if context:
        cuda.library.cuCtxDestroy_v2(context)
    return report


def multiply(cuda: Cuda, module: ctypes.c_void_p, seconds: float) -> tuple[float, int]:
    """Return the GFLOP/s of products of two matrices, and how many rows of the last one are wrong."""
    size = _PRODUCT_SIZE
    left, right = make_factors(size)
    function = ctypes.c_void_p()
    cuda.call("cuModuleGetFunction", ctypes.byref(function), module, b"product")
    bytes_of = size * size * 4
    places = [cuda.allocate(bytes_of) for _ in range(3)]
    cuda.call("cuMemcpyHtoD_v2", places[0], left.tobytes(), ctypes.c_size_t(bytes_of))
    cuda.call("cuMemcpyHtoD_v2", places[1], right.tobytes(), ctypes.c_size_t(bytes_of))
    grid = (size // _TILE, size // _TILE, 1)
    block = (_TILE, _TILE, 1)
    begin = time.monotonic()
    products = 0
    while True:
        cuda.start(function, grid, block, *places, ctypes.c_uint32(size))
        cuda.call("cuCtxSynchronize")
        products += 1
        spent = time.monotonic() - begin
        if spent >= seconds:
            break
    result = ctypes.create_string_buffer(bytes_of)
    cuda.call("cuMemcpyDtoH_v2", result, places[2], ctypes.c_size_t(bytes_of))
    for place in places:
        cuda.call("cuMemFree_v2", place)
    return products * 2 * size**3 / 1e9 / spent, count_wrong_rows(result.raw, size)


def make_factors(size: int) -> tuple[array.array[float], array.array[float]]:
    """Return two matrices of small whole numbers, row by row."""
    left = array.array("f", [(row + at) % 5 for row in range(5) for at in range(size)])
    right = array.array("f", [(at * column) % 3 for at in range(3) for column in range(size)])
    rows = [left[row % 5 * size : (row % 5 + 1) * size] for row in range(size)]
    columns = [right[at % 3 * size : (at % 3 + 1) * size] for at in range(size)]
    return join_rows(rows), join_rows(columns)


def join_rows(rows: list[array.array[float]]) -> array.array[float]:
    """Return the rows of a matrix as one array."""
    whole = array.array("f")
    for row in rows:
        whole.extend(row)
    return whole


def count_wrong_rows(result: bytes, size: int) -> int:
    """Return how many rows of the product differ from the known one, whose values repeat every 5 rows, 3 columns."""
    expected = []
    for row in range(5):
        period = [sum((row + at) % 5 * (at * column % 3) for at in range(size)) for column in range(3)]
        expected.append(array.array("f", [period[column % 3] for column in range(size)]).tobytes())
    width = size * 4
    return sum(result[row * width : (row + 1) * width] != expected[row % 5] for row in range(size))


def check_memory(cuda: Cuda, module: ctypes.c_void_p) -> tuple[int, float, int]:
    """Return the MiB of memory that were written and read, at which MB/s, and how many words were wrong."""
    free = ctypes.c_size_t()
    total = ctypes.c_size_t()
    cuda.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    function = ctypes.c_void_p()
    cuda.call("cuModuleGetFunction", ctypes.byref(function), module, b"compare")
    count = int(free.value * _MEMORY_SHARE) // 4
    memory = cuda.allocate(count * 4)
    wrong = cuda.allocate(4)
    cuda.call("cuMemsetD32_v2", wrong, 0, ctypes.c_size_t(1))
    begin = time.monotonic()
    for pattern in _PATTERNS:
        cuda.call("cuMemsetD32_v2", memory, ctypes.c_uint32(pattern), ctypes.c_size_t(count))
        arguments = (memory, ctypes.c_uint64(count), ctypes.c_uint32(pattern), wrong)
        cuda.start(function, (1024, 1, 1), (256, 1, 1), *arguments)
        cuda.call("cuCtxSynchronize")
    spent = time.monotonic() - begin
    number = ctypes.c_uint32()
    cuda.call("cuMemcpyDtoH_v2", ctypes.byref(number), wrong, ctypes.c_size_t(4))
    for place in (memory, wrong):
        cuda.call("cuMemFree_v2", place)
    return count * 4 // _MIB, 2 * len(_PATTERNS) * count * 4 / 1e6 / spent, number.value


def read_driver(uuid: str) -> dict[str, Any]:
    """Return the driver's version, and the power and the temperature of a GPU, as far as the driver tells them."""
    reading: dict[str, Any] = {}
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return reading
    handle = ctypes.c_void_p()
    number = ctypes.c_uint()
    text = ctypes.create_string_buffer(96)
    if library.nvmlInit_v2() != 0:
        return reading
    if library.nvmlSystemGetDriverVersion(text, 96) == 0:
        reading["driver"] = text.value.decode("ascii", "replace")
    if library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)) == 0:
        if library.nvmlDeviceGetPowerUsage(handle, ctypes.byref(number)) == 0:
            reading["watts"] = number.value / 1000
        if library.nvmlDeviceGetTemperature(handle, 0, ctypes.byref(number)) == 0:
            reading["celsius"] = number.value
    library.nvmlShutdown()
    return reading


def measure_gpus(seconds: float) -> tuple[list[dict[str, Any]], str]:
    """Return a report for each GPU of the job, and the reason why there is none."""
    try:
        cuda = Cuda()
        return [measure_gpu(cuda, index, seconds) for index in range(cuda.count())], ""
    except OSError:
        return [], "the job finds no libcuda.so.1: the container runtime brings it where it knows the GPUs"
    except CudaError as error:
        return [], str(error)


def run_allreduce(count: int) -> tuple[float | None, str]:
    """Return the GB/s of an all-reduce over all GPUs of the job (bus bandwidth, as NCCL's tests count it).

    The second value says why there is none.
    """
    if count < 2:
        return None, ""
    check = subprocess.run([sys.executable, "-c", "import torch.cuda.nccl"], stderr=subprocess.DEVNULL, check=False)
    if check.returncode != 0:
        return None, "the image has no torch with NCCL, so that no all-reduce over the GPUs ran"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    ranks = [
        subprocess.Popen(
            [sys.executable, __file__, "allreduce", str(rank), str(count), str(port)], stdout=subprocess.PIPE
        )
        for rank in range(count)
    ]
    answers = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode != 0 for rank in ranks):
        return None, "the all-reduce over the GPUs failed: its lines are in the log"
    return float(answers[0]), ""


def reduce_rank(rank: int, size: int, port: int) -> None:
    """Take part in the all-reduce, and print the GB/s."""
    import torch
    import torch.distributed

    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    values = torch.full((_REDUCED,), float(rank + 1), device="cuda")
    torch.distributed.all_reduce(values)
    expected = size * (size + 1) / 2
    if not bool((values == expected).all()):
        raise SystemExit(f"GPU {rank}: a sum of the all-reduce is wrong")
    torch.cuda.synchronize()
    begin = time.monotonic()
    for _ in range(10):
        torch.distributed.all_reduce(values)
    torch.cuda.synchronize()
    spent = time.monotonic() - begin
    print(10 * _REDUCED * 4 * 2 * (size - 1) / size / 1e9 / spent)
    torch.distributed.destroy_process_group()


def measure_host(seconds: float, cores: int, mib: int, gpus: int, stress: StressOrder) -> dict[str, Any]:
    """Return everything that the job measures of its host."""
    output = os.environ["OUTPUT_DIR"]
    report: dict[str, Any] = {"cores": measure_cores(seconds, cores)}
    report["memory"], report["memory_wrong"] = measure_memory(seconds, mib)
    for name, folder in (("disk", os.getcwd()), ("output", output)):
        written, read, right = measure_folder(folder, mib)
        report[name] = {"write": written, "read": read, "right": right}
    report["file"] = leave_file(output)
    report["gpus"], report["no_gpus"] = measure_gpus(seconds) if gpus else ([], "")
    report["allreduce"], report["no_allreduce"] = run_allreduce(len(report["gpus"]))
    report["stress"] = stress_host(stress) if stress.rounds else None
    return report


def answer_links() -> None:
    """Answer connections: echo the pings, count what comes, send as much as is asked for. Ends by a signal."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", int(os.environ["ROLE_PORT"])))
    listener.listen(8)
    while True:
        link, _ = listener.accept()
        with link:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                answer_link(link)
            except OSError:
                continue  # the other side has gone: the next one gets an answer


def answer_link(link: socket.socket) -> None:
    """Answer one connection. Each byte is an order: a ping, a block that comes, a time for which to send blocks."""
    block = bytes(_MIB)
    while True:
        order = link.recv(1)
        if order == b"p":
            link.sendall(b"p")
        elif order == b"b":
            read_exactly(link, _MIB)
        elif order == b"c":
            link.sendall(b"c")
        elif order == b"s":
            end = time.monotonic() + float(read_exactly(link, 8))
            while time.monotonic() < end:
                link.sendall(b"b" + block)
            link.sendall(b"e")
        else:
            return


def read_exactly(link: socket.socket, size: int) -> bytes:
    """Return so many bytes."""
    data = bytearray()
    while len(data) < size:
        part = link.recv(min(size - len(data), _MIB))
        if not part:
            raise OSError("the other side has closed the connection")
        data += part
    return bytes(data)


def measure_link(seconds: float) -> dict[str, Any]:
    """Return the latency in microseconds and the MB/s in both directions to the job of the role `listener`."""
    host, _, port = os.environ["LISTENER_ADDRESS"].rpartition(":")
    block = bytes(_MIB)
    with socket.create_connection((host, int(port)), 60) as link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        times = []
        for _ in range(_PINGS):
            begin = time.monotonic()
            link.sendall(b"p")
            read_exactly(link, 1)
            times.append(time.monotonic() - begin)
        begin = time.monotonic()
        sent = 0
        while time.monotonic() - begin < seconds:
            link.sendall(b"b" + block)
            sent += 1
        link.sendall(b"c")
        read_exactly(link, 1)
        rate = sent * _MIB / 1e6 / (time.monotonic() - begin)
        link.sendall(b"s" + f"{seconds:08.3f}".encode())
        begin = time.monotonic()
        received = 0
        while read_exactly(link, 1) == b"b":
            read_exactly(link, _MIB)
            received += 1
        back = received * _MIB / 1e6 / (time.monotonic() - begin)
    return {"latency": sorted(times)[len(times) // 2] * 1e6, "sent": rate, "received": back}


def main(arguments: list[str]) -> None:
    """Do what the arguments say."""
    kind = arguments[0]
    if kind == "listen":
        answer_links()
    elif kind == "allreduce":
        reduce_rank(*map(int, arguments[1:]))
    else:
        report = measure_link(float(arguments[1])) if kind == "link" else None
        if report is None:
            seconds, cores, mib, gpus, *order = arguments[1:]
            stress = StressOrder(int(order[0]), float(order[1]), float(order[2]), int(order[3]))
            report = measure_host(float(seconds), int(cores), int(mib), int(gpus), stress)
        print(PREFIX + json.dumps(report), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
