#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes states of one small DLRM for converter_test.cpp, with nothing but Python:

    states.py FOLDER

f2.npz, f4.npz, f8.npz and torch.pt have the same numbers, which all of these types have exactly:
number i of the file of the model is ((7 i) mod 33 - 16) / 8. The others are wrong, each in one way.
"""

import json
import struct
import sys
import zipfile

CODES = {"<f2": "e", "<f4": "f", "<f8": "d", "<i4": "i"}


def good_state():
    """Shapes and values by name, in the order of the file, then the tables."""
    state, count = {}, 0
    for network, widths in (("bot_l", (3, 4, 8)), ("top_l", (11, 2, 1))):
        for i, (before, after) in enumerate(zip(widths, widths[1:])):
            for part, shape in (("weight", (after, before)), ("bias", (after,))):
                size = before * after if part == "weight" else after
                values = [((count + j) * 7 % 33 - 16) / 8 for j in range(size)]
                state[f"{network}.{2 * i}.{part}"] = (shape, values)
                count += size
    for table in range(2):
        state[f"emb_l.{table}.weight"] = ((5, 8), [float(table + row)
                                                   for row in range(5) for _ in range(8)])
    return state


def npy(shape, values, descr="<f4", fortran=False):
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {tuple(shape)}, }}\n"
    body = struct.pack(f"<{len(values)}{CODES[descr]}", *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body


def write(path, state, descr="<f4", fortran=False, change=None):
    with zipfile.ZipFile(path, "w") as archive:
        for name, (shape, values) in state.items():
            data = npy(shape, values, descr, fortran)
            archive.writestr(name + ".npy", change(name, data) if change else data)


def without(name):
    return {key: array for key, array in good_state().items() if key != name}


def with_shape(name, shape):
    values = [0.0] * (shape[0] * shape[1])
    return good_state() | {name: (shape, values)}


def main():
    folder = sys.argv[1] + "/"
    for descr in ("<f2", "<f4", "<f8"):
        write(f"{folder}{descr[1:]}.npz", good_state(), descr)
    with open(folder + "torch.pt", "w", encoding="ascii") as file:
        json.dump(good_state(), file)
    whole = {name: (shape, [int(value) for value in values])
             for name, (shape, values) in good_state().items()}
    write(folder + "whole.npz", whole, "<i4")
    write(folder + "columns.npz", good_state(), fortran=True)
    write(folder + "large.npz", good_state() | {"bot_l.0.bias": ((4,), [1e300] * 4)}, "<f8")
    write(folder + "none.npz", good_state(), change=lambda name, data: b"no array")
    write(folder + "cut.npz", good_state(), change=lambda name, data: data[:-4])
    write(folder + "bias.npz", without("bot_l.0.bias"))
    write(folder + "top.npz", {name: array for name, array in good_state().items()
                               if not name.startswith("top_l")})
    write(folder + "tables.npz", {name: array for name, array in good_state().items()
                                  if not name.startswith("emb_l")})
    write(folder + "chain.npz", with_shape("bot_l.2.weight", (8, 5)))
    write(folder + "rows.npz", with_shape("emb_l.1.weight", (5, 16)))
    write(folder + "inputs.npz", with_shape("top_l.0.weight", (2, 12)))
    with open(folder + "empty.npz", "wb"):
        pass


main()
