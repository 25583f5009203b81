"""Makes the buckets `datasets` and `runs`, and puts the digits into the first: python put_data.py FOLDER

FOLDER has mnist_5k.csv.gz (../ai-toaster/get_data.py makes it). AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION
and AWS_ENDPOINT_URL say which store. Needs `pip install obstore`.
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
            print("s3://datasets/digits/mnist_5k.csv.gz is there")


def make_bucket(store: S3Store, bucket: str) -> None:
    """Make a bucket; one of yours that is there stays."""
    address = obstore.sign(store, "PUT", "", timedelta(minutes=5))
    try:
        urllib.request.urlopen(urllib.request.Request(address, method="PUT")).close()
    except urllib.error.HTTPError as error:
        if error.code != 409:
            sys.exit(f"the bucket {bucket} cannot be made: the store answers {error.code}")


if __name__ == "__main__":
    main()
