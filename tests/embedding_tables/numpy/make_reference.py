#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what NumPy makes of bags of rows, and of a small DLRM, for numpy_reference_test.cpp:

    make_reference.py FOLDER        writes FOLDER/bags.data, state.npz, ranks.data

Run by hand when the cases change; the files are kept beside it. Numbers are hexadecimal floats, one
line for each list.
"""

import sys

import numpy as np

ROWS = 16


def line(file, word, values, form):
    file.write(" ".join([word] + [form(value) for value in values]) + "\n")


def floats(file, word, values):
    line(file, word, np.asarray(values, np.float64).ravel(), lambda value: float(value).hex())


def numbers(file, word, values):
    line(file, word, values, str)


def rows_of(kind, rows):
    """What a table of this type has of these rows: what is nearest to them."""
    if kind == "fp16":
        return rows.astype(np.float16).astype(np.float32)
    if kind == "bf16":
        bits = rows.view(np.uint32) & np.uint32(0xFFFF0000)
        return bits.view(np.float32)
    return rows


def reduced(operation, bag, weights, vector):
    """One bag in double precision, and the sum of the magnitudes that were added."""
    width = bag.shape[1]
    if bag.shape[0] == 0:
        zeros = np.zeros(1 if operation == "inner_product" else width)
        return zeros, zeros
    scaled = bag if weights is None else bag * weights[:, None]
    total, magnitude = scaled.sum(axis=0), np.abs(scaled).sum(axis=0)
    if operation == "sum":
        return total, magnitude
    if operation == "mean":
        return total / bag.shape[0], magnitude / bag.shape[0]
    if operation == "max":
        return bag.max(axis=0), np.zeros(width)
    if operation == "min":
        return bag.min(axis=0), np.zeros(width)
    return np.array([total @ vector]), np.array([magnitude @ np.abs(vector)])


def write_bags(path, random):
    with open(path, "w", encoding="ascii") as file:
        for kind in ("fp32", "fp16", "bf16", "int8"):
            for width in (8, 24) if kind == "fp32" else (8,):
                rows = random.uniform(-3, 3, (ROWS, width)).astype(np.float32)
                rows = rows_of(kind, rows)
                file.write(f"table {kind} {width}\n")
                floats(file, "rows", rows)
                for operation in ("sum", "mean", "max", "min", "inner_product"):
                    for weighted in (False, True):
                        if weighted and operation not in ("sum", "inner_product"):
                            continue
                        write_case(file, random, rows.astype(np.float64), operation, weighted)


def write_case(file, random, rows, operation, weighted):
    lengths = [0, 1, 2, 17, int(random.integers(3, 30))]
    offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    ids = random.integers(0, ROWS, sum(lengths))
    weights = random.uniform(-2, 2, len(ids)).astype(np.float32) if weighted else None
    product = operation == "inner_product"
    vector = random.uniform(-1, 1, rows.shape[1]).astype(np.float32) if product else None
    file.write(f"case {operation}\n")
    numbers(file, "ids", ids)
    numbers(file, "offsets", offsets)
    floats(file, "weights", [] if weights is None else weights)
    floats(file, "vector", [] if vector is None else vector)
    wanted, magnitudes = [], []
    for begin, length in zip(offsets, lengths):
        part = slice(begin, begin + length)
        found = reduced(operation, rows[ids[part]],
                        None if weights is None else weights[part].astype(np.float64),
                        None if vector is None else vector.astype(np.float64))
        wanted.append(found[0])
        magnitudes.append(found[1])
    floats(file, "wanted", np.concatenate(wanted))
    floats(file, "magnitudes", np.concatenate(magnitudes))


def write_model(folder, random):
    """A DLRM as Naumov et al. have it: each two of the vectors multiplied, the lower triangle."""
    dense, width, tables = 5, 8, 3
    pairs = (tables + 1) * tables // 2
    state = {}

    def layers(name, widths):
        for i, (before, after) in enumerate(zip(widths, widths[1:])):
            state[f"{name}.{2 * i}.weight"] = random.normal(0, 0.6, (after, before))
            state[f"{name}.{2 * i}.bias"] = random.normal(0, 0.3, after)

    layers("bot_l", [dense, 16, width])
    layers("top_l", [width + pairs, 24, 1])
    for i in range(tables):
        state[f"emb_l.{i}.weight"] = random.normal(0, 0.5, (ROWS, width))
    state = {name: array.astype(np.float32) for name, array in state.items()}
    np.savez(folder + "/state.npz", **state)
    wide = {name: array.astype(np.float64) for name, array in state.items()}

    def run(name, x, last):
        count = sum(1 for key in wide if key.startswith(name) and key.endswith("weight"))
        for i in range(count):
            x = wide[f"{name}.{2 * i}.weight"] @ x + wide[f"{name}.{2 * i}.bias"]
            x = last(x) if i + 1 == count else np.maximum(x, 0)
        return x

    with open(folder + "/ranks.data", "w", encoding="ascii") as file:
        for _ in range(12):
            features = random.uniform(-1, 1, dense).astype(np.float32)
            bags = [random.integers(0, ROWS, random.integers(0, 9)) for _ in range(tables)]
            x = run("bot_l", features.astype(np.float64), lambda y: np.maximum(y, 0))
            vectors = [x] + [wide[f"emb_l.{i}.weight"][bag].sum(axis=0)
                             for i, bag in enumerate(bags)]
            products = [vectors[i] @ vectors[j] for i in range(len(vectors)) for j in range(i)]
            rank = run("top_l", np.concatenate([x, products]), lambda y: 1 / (1 + np.exp(-y)))
            floats(file, "features", features)
            for bag in bags:
                numbers(file, "ids", bag)
            floats(file, "rank", rank)


def main():
    random = np.random.default_rng(43)
    write_bags(sys.argv[1] + "/bags.data", random)
    write_model(sys.argv[1], random)


main()
