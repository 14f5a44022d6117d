"""Blobs up and down, resumably: the same names and files as the C++ client's, so that either goes on where the other stopped."""
from __future__ import annotations

import fcntl
import hashlib
import os
import pathlib
import re
import socket
import uuid
from typing import Any, BinaryIO, Iterator, Optional, Tuple

from mendel.service._channel import Channel, ProgressFunction
from mendel.service._errors import MendelError
from mendel.service._messages import BYTE_STREAM, Method
from mendel.service._retry import Retrier

_CHUNK = 1 << 20
_PATIENCE = 4  # a server may take a while to notice that the client which wrote an upload is gone
_WRITE = Method(BYTE_STREAM, "Write")
_READ = Method(BYTE_STREAM, "Read")
_STATUS = Method(BYTE_STREAM, "QueryWriteStatus")


def hash_file(path: pathlib.Path, size: Optional[int] = None) -> Tuple["hashlib._Hash", int]:
    """SHA-256 of the file (of its first `size` bytes), and how many bytes that were."""
    digest, count = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while size is None or count < size:
            data = file.read(_CHUNK if size is None else min(_CHUNK, size - count))
            if not data:
                break
            digest.update(data)
            count += len(data)
    return digest, count


def upload_uuid(sha256: str) -> str:
    """The same for the same blob, user and machine: a killed client's successor finds the unfinished upload again."""
    host = socket.gethostname()
    h = hashlib.sha256(f"mendel upload/{sha256}/{host}/{os.getuid()}".encode()).hexdigest()
    return f"{h[:8]}-{h[8:12]}-8{h[13:16]}-a{h[17:20]}-{h[20:32]}"


def upload(channel: Channel, retrier: Retrier, path: pathlib.Path, sha256: str, size: int, progress: ProgressFunction,
           prefix: str = "") -> None:
    name = f"{prefix}uploads/{upload_uuid(sha256)}/blobs/{sha256}/{size}"
    refused, committed = 0, 0
    with open(path, "rb") as file:
        while True:
            try:
                now, complete = _committed(channel, name)
                if complete:
                    progress(size, size)
                    return
                if now > committed:
                    retrier.progress()
                committed = now
                response = channel.write(_WRITE, _requests(file, name, committed, size, progress))
                if response.committed_size == size:
                    return
                raise MendelError("UNAVAILABLE", "the upload was cut short")
            except MendelError as error:
                refused += error.code == "ABORTED"
                if error.code == "ABORTED" and refused == _PATIENCE + 1:
                    # Another client writes under the same name: go on under a name of one's own.
                    committed = 0
                    name = f"{prefix}uploads/{uuid.uuid4()}/blobs/{sha256}/{size}"
                elif error.code == "OUT_OF_RANGE" or (error.code == "ABORTED" and refused <= _PATIENCE):
                    retrier.again(MendelError("UNAVAILABLE", error.message))
                else:
                    retrier.again(error)


def _committed(channel: Channel, name: str) -> Tuple[int, bool]:
    try:
        status = channel.call(_STATUS, _STATUS.request(resource_name=name))
    except MendelError as error:
        if error.code == "NOT_FOUND":
            return 0, False
        raise
    return status.committed_size, status.complete


def _requests(file: BinaryIO, name: str, start: int, size: int, progress: ProgressFunction) -> Iterator[Any]:
    file.seek(start)
    offset = start
    while True:
        data = file.read(min(_CHUNK, size - offset))
        if not data and offset < size:
            return  # became shorter: the server sees an unfinished upload
        request = _WRITE.request(resource_name=name if offset == start else "", write_offset=offset, data=data)
        offset += len(data)
        request.finish_write = offset == size
        progress(offset, size)
        yield request
        if offset == size:
            return


def download(channel: Channel, retrier: Retrier, blob: str, path: pathlib.Path, progress: ProgressFunction) -> None:
    parsed = re.fullmatch(r"(?:projects/[a-z0-9-]+/)?blobs/([0-9a-f]{64})/(\d{1,18})", blob)
    if parsed is None:
        raise MendelError("DATA_LOSS", f"the server named a blob '{blob}'")
    sha256, size = parsed.group(1), int(parsed.group(2))
    part = path.with_name(f"{path.name}.{sha256[:12]}.part")
    descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise MendelError("ABORTED", f"another process is writing {part}") from None
        present = os.fstat(file.fileno()).st_size
        starts = [present, 0] if 0 < present <= size else [0]
        for start in starts:  # what an earlier download left may be damaged: then everything is read anew, once
            file.truncate(start)
            digest, _ = hash_file(part, start)
            _fill(channel, retrier, blob, size, file, start, digest, progress)
            if digest.hexdigest() == sha256:
                os.fsync(file.fileno())
                os.replace(part, path)
                _sync_folder(path.parent)
                return
    part.unlink()
    raise MendelError("DATA_LOSS", "what was downloaded does not have the blob's hash")


def _fill(channel: Channel, retrier: Retrier, blob: str, size: int, file: Any, offset: int, digest: Any,
          progress: ProgressFunction) -> None:
    progress(offset, size)
    while offset < size:
        try:
            for response in channel.read(_READ, _READ.request(resource_name=blob, read_offset=offset)):
                if offset + len(response.data) > size:
                    raise MendelError("DATA_LOSS", "the server sent more than the blob's size")
                file.seek(offset)
                view = memoryview(response.data)
                while view:
                    view = view[file.write(view):]
                digest.update(response.data)
                offset += len(response.data)
                retrier.progress()
                progress(offset, size)
            if offset < size:
                raise MendelError("UNAVAILABLE", "the download was cut short")
        except MendelError as error:
            retrier.again(error)


def _sync_folder(folder: pathlib.Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
