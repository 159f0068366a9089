"""safetensors files of fp32 and int64 tensors (https://github.com/huggingface/safetensors): 8 bytes of little-endian
header length, a JSON header, the data."""

import json
import struct

import numpy as np

_DTYPES = {"F32": np.dtype("<f4"), "I64": np.dtype("<i8")}


def write(path: str, tensors: dict) -> None:
    header, offset = {}, 0
    for name, array in tensors.items():
        kind = "I64" if array.dtype == np.int64 else "F32"
        size = array.size * _DTYPES[kind].itemsize
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "xb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, array in tensors.items():
            file.write(np.ascontiguousarray(array, dtype=_DTYPES[header[name]["dtype"]]).tobytes())


def read(path: str) -> dict:
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        part = data[8 + length + begin:8 + length + end]
        tensors[name] = np.frombuffer(part, dtype=_DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors
