#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts the state of a DLRM into a file of a ranking model, and its tables into NumPy files.

    dlrm_to_espalier.py STATE.npz MODEL [--tables NAME,NAME,...] [--rows FOLDER] [--mean]
    dlrm_to_espalier.py STATE.pt MODEL ...        takes PyTorch

STATE has arrays of floats of 16, 32 or 64 bits, which become float32 (numpy.savez of a state dict;
of .npz nothing but Python is needed), by the names that DLRM gives them:

    bot_l.0.weight bot_l.0.bias bot_l.2.weight ...  layers of the bottom network,
                                                    [outputs][inputs]
    emb_l.0.weight emb_l.1.weight ...               embedding tables, [rows][dimension]
    top_l.0.weight top_l.0.bias ...                 layers of the top network

MODEL is what `espalier embedding model NAME MODEL` takes (docs/formats/model.md). The model reads
embedding tables by the names of --tables, emb_0, emb_1 and so on if none are given; with --rows
each is written as FOLDER/NAME.npy, which `espalier embedding load NAME FOLDER/NAME.npy` takes.
"""

import argparse
import array
import ast
import errno
import math
import os
import re
import struct
import sys
import zipfile


class Array:
    """An array of float32: its shape, and its bytes, row by row."""

    def __init__(self, shape, data):
        self.shape = shape
        self.data = data


# Codes of floats, as struct has them, by the types that NumPy files name.
FLOATS = {"<f2": "<e", "<f4": "<f", "<f8": "<d"}


def to_float32(name, descr, body):
    """The nearest floats of 32 bits, little-endian as in the file."""
    if descr == "<f4":
        return body
    narrow = array.array("f", (value for (value,) in struct.iter_unpack(FLOATS[descr], body)))
    if descr == "<f8":
        for (value,), near in zip(struct.iter_unpack("<d", body), narrow):
            if math.isinf(near) and not math.isinf(value):
                sys.exit(f"{name}: {value} is too large for float32")
    if sys.byteorder == "big":
        narrow.byteswap()
    return narrow.tobytes()


def read_npy(name, data):
    if data[:6] != b"\x93NUMPY":
        sys.exit(f"{name}: this is no NumPy array")
    width = "<H" if data[6] == 1 else "<I"
    begin = 8 + struct.calcsize(width)
    length = struct.unpack_from(width, data, 8)[0]
    header = ast.literal_eval(data[begin:begin + length].decode("latin1"))
    descr = str(header["descr"])
    if descr not in FLOATS:
        sys.exit(f"{name}: values are {', '.join(FLOATS)}, and these are {descr}: "
                 "array.astype('<f4') makes them so")
    if header["fortran_order"] and len(header["shape"]) > 1:
        sys.exit(f"{name}: its columns lie behind each other: numpy.ascontiguousarray(array) has "
                 "rows")
    count = 1
    for size in header["shape"]:
        count *= size
    body = data[begin + length:]
    size = struct.calcsize(FLOATS[descr])
    if len(body) != size * count:
        sys.exit(f"{name}: the array has {len(body)} bytes, and its shape takes {size * count}")
    return Array(header["shape"], to_float32(name, descr, body))


def write_npy(path, array):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(array.shape)}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)))
        file.write(header.encode("latin1") + array.data)


def read_state(path):
    if not os.path.exists(path):
        sys.exit(f"cannot read {path}: {os.strerror(errno.ENOENT)}")
    if path.endswith(".npz"):
        if not zipfile.is_zipfile(path):
            sys.exit(f"{path} is no file of NumPy's (numpy.savez)")
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy"): read_npy(name.removesuffix(".npy"),
                                                        archive.read(name))
                    for name in archive.namelist()}
    import torch  # of other files alone

    state = torch.load(path, map_location="cpu", weights_only=True)
    state = state.get("state_dict", state)
    return {name: Array(tuple(tensor.shape), tensor.float().contiguous().numpy().tobytes())
            for name, tensor in state.items() if hasattr(tensor, "shape")}


def numbered(state, pattern):
    """Arrays whose names match, by the number in them."""
    found = {int(match.group(1)): array for name, array in state.items()
             if (match := re.fullmatch(pattern, name))}
    return [(number, found[number]) for number in sorted(found)]


def layers_of(state, network):
    """Widths and floats of a network, and how many inputs its first layer takes."""
    weights = numbered(state, network + r"\.(\d+)\.weight")
    biases = dict(numbered(state, network + r"\.(\d+)\.bias"))
    if not weights:
        sys.exit(f"the state has no {network}.N.weight")
    widths, floats, before = [], b"", None
    for number, weight in weights:
        name = f"{network}.{number}"
        if len(weight.shape) != 2 or (before is not None and weight.shape[1] != before):
            sys.exit(f"{name}.weight has the shape {weight.shape}")
        if number not in biases or biases[number].shape != (weight.shape[0],):
            sys.exit(f"{name}.bias is not there, or has another shape")
        before = weight.shape[0]
        widths.append(before)
        floats += weight.data + biases[number].data
    return weights[0][1].shape[1], widths, floats


def model_file(state, names, mean):
    tables = [array for _, array in numbered(state, r"emb_l\.(\d+)\.weight")]
    names = names or [f"emb_{i}" for i in range(len(tables))]
    if not tables or len(names) != len(tables):
        sys.exit(f"the state has {len(tables)} tables, and {len(names)} names are given")
    dimension = tables[0].shape[1]
    if any(table.shape[1] != dimension for table in tables):
        sys.exit("the embedding tables have rows of different lengths")
    dense, bottom, bottom_floats = layers_of(state, "bot_l")
    inputs, top, top_floats = layers_of(state, "top_l")
    pairs = (len(tables) + 1) * len(tables) // 2
    if bottom[-1] != dimension or inputs != dimension + pairs:
        sys.exit(f"the top network takes {inputs} inputs, and not {dimension} and {pairs} products")
    head = struct.pack("<8s7I28x", b"ELIR MDL", 1, dense, dimension, len(tables), len(bottom),
                       len(top), 2 if mean else 1)
    head += struct.pack(f"<{len(bottom) + len(top)}I", *bottom, *top)
    for name in names:
        head += struct.pack("<I", len(name.encode())) + name.encode()
    head += b"\0" * (-len(head) % 8)
    return head + bottom_floats + top_floats, dict(zip(names, tables))


def main():
    parser = argparse.ArgumentParser(
        description="Converts the state of a DLRM into a file of a ranking model.")
    parser.add_argument("state", metavar="STATE", help="file of numpy.savez (.npz), or of PyTorch")
    parser.add_argument("model", metavar="MODEL", help="file to write")
    parser.add_argument("--tables", metavar="NAMES", help="of the tables on the node, with commas")
    parser.add_argument("--rows", metavar="FOLDER", help="write each table as a NumPy file")
    parser.add_argument("--mean", action="store_true", help="rows are averaged, not summed")
    given = parser.parse_args()
    names = given.tables.split(",") if given.tables else []
    model, tables = model_file(read_state(given.state), names, given.mean)
    with open(given.model, "wb") as file:
        file.write(model)
    if given.rows:
        os.makedirs(given.rows, exist_ok=True)
        for name, table in tables.items():
            write_npy(os.path.join(given.rows, name + ".npy"), table)


if __name__ == "__main__":
    main()
