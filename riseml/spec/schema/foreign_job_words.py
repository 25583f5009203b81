"""How other tools describe jobs, and what riseml calls it.

The tools are Kubeflow, dstack, SkyPilot, TorchX, compose, Determined and W&B. Their words are seldom near ours: the
nearest key of `volumes` is `roles`. A word becomes the key that means the same, or a sentence where riseml has no such
key. `foreign_words` has the words of parameters and searches.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from riseml.spec.schema.near_words import squash
from riseml.spec.yaml.problems import KeyPath

_PLACES = (
    ("train.run", "command commands cmd script steps entrypoint program args exec"),
    ("train.install", "setup build dependencies requirements pip packages buildcommands"),
    ("train.image", "docker dockerimage baseimage imageid container containers python"),
    ("train.resources.mem", "memory ram memlimit memorylimit memgb memreservation"),
    ("train.resources.cpus", "cpu cpucount numcpus cores vcpus ncpus cpuspertask cpulimit"),
    (
        "train.resources.gpus",
        "gpucount numgpus ngpus accelerators slots slotspertrial slotsperworker com/gpu gres devices",
    ),
    ("train.resources.gpu", "gpuname gputype gpumodel acceleratortype"),
    ("train.resources.gpu_mem", "gpumemory vram gpumemorygb"),
    ("train.resources.labels", "nodeselector placement affinity constraint"),
    ("train.resources", "requests resourcespernode resourcesperworker resource"),
    ("train.shm_size", "sharedmemory shm"),
    ("train.env", "environment envs envvars environmentvariables envfile"),
    (
        "train.retry",
        "maxretries retries maxrestarts backofflimit retrypolicy restartpolicy jobrecovery restart maxattempts",
    ),
    ("train.max_duration", "timeout activedeadlineseconds maxruntime walltime timelimit maxtime"),
    ("train.idle_timeout", "idleduration inactivityduration autostop idleminutestoautostop utilizationpolicy"),
    ("train.stop_grace", "stopduration terminationgraceperiodseconds stopgraceperiod stoptimeout preemptiontimeout"),
    ("train.priority", "priorityclass priorityclassname"),
    ("train.parameters", "hyperparameters params hparams"),
    ("train.search", "searcher sweep tune tuning hpo"),
    ("train.search.stop", "earlyterminate earlystopping pruner"),
    ("train.search.trials", "runcap maxtrials ntrials numsamples maxtrialcount"),
    ("train.search.goal", "smallerisbetter direction"),
    ("train.search.max_failed", "maxfailedtrialcount"),
    ("train.concurrency", "parallelism maxconcurrenttrials paralleltrialcount maxparallel njobs"),
    ("train.data", "filemounts datasets"),
    ("train.save", "checkpointstorage checkpoints"),
    ("train.outputs", "artifacts outputfiles"),
    ("train.notify", "webhooks notifications alerts logpolicies"),
    ("train.tensorflow.distributed.ps", "pscount psreplicas parameterservers numps"),
    ("train.roles.NAME.after", "dependson startuporder"),
)
_WORKERS = (
    "how many jobs: `worker: 3` in distributed of the framework's section, such as"
    " train.pytorch.distributed.worker, or `count` of a role in train.roles"
)
_SENTENCES = (
    (
        _WORKERS,
        "count replicas numreplicas nodes numnodes nnodes numworkers workercount numhosts minreplicas instancecount",
    ),
    (
        "processes in each container: `processes` in distributed of the framework's section, such as"
        " train.pytorch.distributed.processes",
        "nprocpernode numprocpernode processespernode taskspernode ntaskspernode",
    ),
    (
        "jobs have the data folder and OUTPUT_DIR; train.data fetches more; `riseml docs files` says where files are",
        "volumes volume mounts bindmounts storagemounts volumemounts persistentvolumeclaim",
    ),
    ("`riseml forward 4 8888` reaches a port of a job (`riseml docs hands-on`)", "ports port expose portmap"),
    (
        "jobs start in a copy of the project's folder: write `cd FOLDER` as the first line of train.run",
        "workdir workingdir workingdirectory cwd",
    ),
    (
        "`riseml import FILE` writes a riseml.yml from a job of Kubeflow or a compose file (`riseml docs repeating`)",
        "kind apiversion metadata spec template services tfreplicaspecs pytorchreplicaspecs mpireplicaspecs"
        " jaxreplicaspecs runpolicy runtimeref trainer cleanpodpolicy ttlsecondsafterfinished",
    ),
    (
        "which hosts there are is in pool.yml (`riseml docs pool-yml`); train.resources.labels chooses among them",
        "cloud region regions zone zones backends usespot spotpolicy infra fleets maxprice resourcepool partition"
        " tolerations",
    ),
    ("`riseml train --pull` asks the registry for the newest image", "imagepullpolicy pullpolicy"),
    ("riseml starts nothing by the clock; cron may call `riseml train -d`", "schedule cron"),
    (
        "`riseml notebook` opens JupyterLab, and `riseml shell 4` a shell in a job (`riseml docs hands-on`)",
        "ide jupyter",
    ),
    ("riseml decides it: `riseml docs security` says what a job may do", "user privileged capadd securitycontext"),
)


def _list_places() -> Mapping[str, KeyPath]:
    return MappingProxyType({word: tuple(place.split(".")) for place, words in _PLACES for word in words.split()})


def _list_sentences() -> Mapping[str, str]:
    return MappingProxyType({word: sentence for sentence, words in _SENTENCES for word in words.split()})


_PLACE_OF = _list_places()
_SENTENCE_OF = _list_sentences()


def find_place(key: str) -> KeyPath | None:
    """Return the path of the key that means the same as a word of another tool; None: not known.

    Example:
        >>> find_place("num_gpus")
        ('train', 'resources', 'gpus')
    """
    return _PLACE_OF.get(squash(key))


def explain_foreign_key(key: str) -> str | None:
    """Return what to do instead of a key for which riseml has no word; None: not known."""
    return _SENTENCE_OF.get(squash(key))
