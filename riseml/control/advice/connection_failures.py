"""Failures of connections: to other machines (names, certificates, proxies), and to the other jobs of the experiment.

A lost connection to another job is a consequence. `advise` then looks for the job that failed by itself.
"""

from __future__ import annotations

from riseml.control.advice.known_failure import FailureRole, KnownFailure

CONNECTION_FAILURES: tuple[KnownFailure, ...] = (
    KnownFailure(
        "proxy",
        "the proxy cannot be used: check http_proxy and https_proxy in the job, and whether its host reaches the proxy",
        patterns=(
            r"Could not resolve proxy|ProxyError|Cannot connect to proxy|Tunnel connection failed",
            r"407 Proxy Authentication Required|Received HTTP code \d+ from proxy",
        ),
    ),
    KnownFailure(
        "certificate",
        "the certificate of the server that the job calls cannot be checked: install the authority's certificate in"
        " `train.install` and name it in the variables SSL_CERT_FILE and REQUESTS_CA_BUNDLE, or correct the address",
        patterns=(
            r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|SSL certificate problem",
            r"certificate verification failed|CERTIFICATE_UNKNOWN|x509: certificate",
        ),
    ),
    KnownFailure(
        "job-name",
        "the name of another job was not found: jobs are `master`, `worker-1`, `ps-1`, only within one experiment,"
        " and only in containers; `riseml tfconfig` shows the addresses",
        patterns=(r"resolve(?: host:?| ')? ?'?(?P<name>(?:master|chief|worker-\d+|ps-\d+|evaluator))\b",),
    ),
    KnownFailure(
        "name-of-registry",
        "the engine of the host cannot look up the registry {name}: run `getent hosts {name}` there, and check its DNS"
        " server; where other hosts do not know the name either, correct it in `image`",
        patterns=(r"dial tcp: lookup (?P<name>[\w.-]+)(?: on \S+)?: ",),
    ),
    KnownFailure(
        "registry-unreachable",
        "the engine of the host cannot reach the registry {name}: check there whether its address answers, and the"
        " firewall or the proxy between them",
        patterns=(
            r"Get \"https?://(?P<name>[^/\"\s]+)/v2/[^\"]*\": (?:dial tcp|net/http|context deadline|EOF|read tcp)",
        ),
    ),
    KnownFailure(
        "name-of-host",
        "the name {name} cannot be resolved: check its spelling, and whether the host of the job reaches the internet"
        " and its DNS server",
        patterns=(
            r"[Cc]ould not resolve host:? '?(?P<name>[\w.-]+)",
            r"Failed to resolve '(?P<name>[\w.-]+)'",
            r"host='(?P<name>[\w.-]+)'.*(?:Name or service not known|Temporary failure in name resolution)",
        ),
    ),
    KnownFailure(
        "name-resolution",
        "the name of a server cannot be resolved: check its spelling, and whether the host of the job reaches the"
        " internet and its DNS server",
        patterns=(
            r"Temporary failure in name resolution|Name or service not known|nodename nor servname provided",
            r"No address associated with hostname|Temporary failure resolving",
        ),
    ),
    KnownFailure(
        "no-route",
        "the job cannot reach the address that it calls: check whether its host reaches it, and the firewall between"
        " them",
        patterns=(r"Network is unreachable|No route to host|\[Errno 110\] Connection timed out",),
    ),
    KnownFailure(
        "nccl",
        "NCCL lost its connection to another job",
        patterns=(
            r"ncclRemoteError|NCCL WARN .*[Cc]onnection closed|remote process exited or there was a network error",
            r"Watchdog caught collective operation timeout|Connection closed by remote peer",
            r"\[Rank \d+\].*(?:NCCL communicator was aborted|watchdog thread terminated)",
        ),
        role=FailureRole.CONSEQUENCE,
    ),
    KnownFailure(
        "collective",
        "an operation of all jobs was aborted, because one of them lost its connection",
        patterns=(
            r"Collective ops is aborted by|gloo.*Connection (?:closed|reset) by peer|HorovodInternalError",
            r"Horovod has been shut down|ORTE has lost communication|MPI_ERR_PROC_FAILED",
            r"JaxRuntimeError: .*Gloo|CoordinationServiceError|JAX distributed service detected fatal",
        ),
        role=FailureRole.CONSEQUENCE,
    ),
    KnownFailure(
        "grpc",
        "TensorFlow lost its connection to another job",
        patterns=(
            r"UnavailableError|failed to connect to all addresses|grpc_status:14|Socket closed",
            r"errors_impl\.(?:AbortedError|CancelledError)",
        ),
        role=FailureRole.CONSEQUENCE,
    ),
    KnownFailure(
        "connection-lost",
        "the other side of a connection ended it",
        patterns=(
            r"(?i)connection (?:reset|closed|aborted) by (?:remote )?peer|\[Errno 32\] broken pipe",
            r"ConnectionResetError|BrokenPipeError",
        ),
        role=FailureRole.CONSEQUENCE,
    ),
    KnownFailure(
        "connection-refused",
        "nothing listens at the address that the job calls",
        patterns=(r"(?i)connection refused|Couldn't connect to server",),
        role=FailureRole.CONSEQUENCE,
    ),
)
