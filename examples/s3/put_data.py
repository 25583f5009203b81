"""Creates the buckets `datasets` and `runs`, and copies the digits into the first: python3 put_data.py FOLDER

FOLDER has mnist_5k.csv.gz (`python3 ../ai-toaster/get_data.py FOLDER` writes it). AWS_ACCESS_KEY_ID,
AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL describe the store. Needs `pip install obstore`.
"""

import os
import sys
import urllib.error
import urllib.request
from datetime import timedelta
from pathlib import Path

import obstore
from obstore.store import S3Store


def main() -> None:
    folder = Path(sys.argv[1])
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    for bucket in ("datasets", "runs"):
        store = S3Store(bucket, client_options={"allow_http": plain})
        make_bucket(store, bucket)
        if bucket == "datasets":
            obstore.put(store, "digits/mnist_5k.csv.gz", folder / "mnist_5k.csv.gz")
            print("the digits are in s3://datasets/digits/mnist_5k.csv.gz")


def make_bucket(store: S3Store, bucket: str) -> None:
    """Create a bucket, unless it exists already."""
    address = obstore.sign(store, "PUT", "", timedelta(minutes=5))
    try:
        urllib.request.urlopen(urllib.request.Request(address, method="PUT")).close()
    except urllib.error.HTTPError as error:
        if error.code != 409:
            sys.exit(f"cannot create the bucket {bucket}: the store answers {error.code}")


if __name__ == "__main__":
    main()
