"""metadata.json, which describes the records of a data directory.

It is written last and as a whole: a folder without it is not a data set.
"""

import dataclasses
import os

from keras_transformer.errors import require
from keras_transformer.files.json_files import read_json
from keras_transformer.files.paths import to_path
from pipelines.checksummed_json import checked, write_checksummed
from pipelines.damage import damaged_files
from pipelines.data_files import METADATA_FILE
from pipelines.records import FORMAT_VERSION, Metadata


def write_metadata(data_dir: str | os.PathLike, metadata: Metadata) -> None:
    """Completes a data directory: only after this call is it a data set."""
    write_checksummed(to_path(data_dir) / METADATA_FILE, dataclasses.asdict(metadata))


def read_metadata(data_dir: str | os.PathLike, check_files: bool = True) -> Metadata:
    """Reads the metadata of a complete data directory.

    Args:
        data_dir: the folder.
        check_files: check that every file exists, has its size and begins as it did when it was
            written. This does not read whole shards, as `damaged_files` can.

    Raises:
        InputError: if the folder is not a data set, is incomplete, is of another version, or has
            files that are changed, missing, cut off or of another data set.
    """
    path = to_path(data_dir) / METADATA_FILE
    rule = "must be a prepared data directory"
    require(path.exists(), "data_dir", rule, f"{data_dir}, which has no {METADATA_FILE}")
    content = read_json(path)
    version = content.get("format_version")
    rule = f"must be of format_version {FORMAT_VERSION}: prepare the data again"
    require(version == FORMAT_VERSION, None, rule, version, path)
    metadata = checked(content, path, Metadata)
    if check_files:
        for damage in damaged_files(data_dir, metadata):
            raise damage.error
    return metadata
