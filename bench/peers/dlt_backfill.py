"""Loads the documents of every company into Postgres with dlt. Prints the seconds and the version of dlt as JSON.

Reads its input as JSON from standard input: url and apiKey of the service, databaseUrl, dataset, workers, dir.
"""

import json
import os
import sys
import time

given = json.load(sys.stdin)
os.environ.update(
    {
        "DESTINATION__POSTGRES__CREDENTIALS": given["databaseUrl"],
        "EXTRACT__WORKERS": str(given["workers"]),
        "LOAD__WORKERS": str(given["workers"]),
        "NORMALIZE__WORKERS": str(os.cpu_count()),
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "DLT_DATA_DIR": given["dir"],
    }
)

import dlt  # noqa: E402: it reads its settings from the environment
from dlt.sources.helpers import requests  # noqa: E402

headers = {"x-api-key": given["apiKey"]}


def read(path, **query):
    return requests.get(given["url"] + path, params=query, headers=headers).json()


@dlt.resource(name="companies", selected=False)
def companies():
    for company in read("/company", page=1):
        yield company["id"]


# The pages of different companies are read at the same time, and the pages of one company in their order.
@dlt.transformer(
    data_from=companies, name="documents", primary_key="id", write_disposition="merge", parallelized=True
)
def documents(company):
    page, more = 1, True
    while more:
        body = read(f"/document/company/{company}", page=page)
        yield body["documents"]
        page, more = page + 1, body["hasNext"]


# The processes that normalise import this file again, and must not run the pipeline.
if __name__ == "__main__":
    pipeline = dlt.pipeline(
        "peer", destination="postgres", dataset_name=given["dataset"], pipelines_dir=given["dir"]
    )
    began = time.monotonic()
    pipeline.run(companies | documents)
    print(json.dumps({"seconds": time.monotonic() - began, "version": dlt.__version__}))
