"""The signs by which goldens project a tensor to a few numbers, and values from the same hash.

    sign(i, k) = +1 or -1 by the top bit of mix(0x9E3779B1 * i + 0x85EBCA77 * (k + 1)),
    mix(h):  h ^= h >> 16; h *= 0x85EBCA6B; h ^= h >> 13; h *= 0xC2B2AE35; h ^= h >> 16

all modulo 2^32 (mix is MurmurHash3's finalizer). i is the flat, row-major index of an
element, k the number of the projection. The dot product of a tensor's error with such
signs has the error's norm as its root mean square, so four of them see any error that
a comparison of all elements would, within a small factor.

Weights that aren't kept in a file are values of the same hash: element i of the tensor NAME is

    offset + scale * (2 u - 1),  u = (mix(0x9E3779B1 * i + crc32(NAME)) >> 8) / 2^24,

computed in double and rounded to single once; scales are powers of two.
"""

import zlib

import numpy as np

PROJECTIONS = 4


def mix(count, start):
    h = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B1)
    h += np.uint32(start & 0xFFFFFFFF)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x85EBCA6B)
    h ^= h >> np.uint32(13)
    h *= np.uint32(0xC2B2AE35)
    h ^= h >> np.uint32(16)
    return h


def signs(count, k):
    return np.where(mix(count, 0x85EBCA77 * (k + 1)) >> np.uint32(31), -1.0, 1.0)


def generate(name, count, scale, offset):
    u = (mix(count, zlib.crc32(name.encode())) >> np.uint32(8)).astype(np.float64) / 2**24
    return (offset + scale * (2 * u - 1)).astype(np.float32)


def project(values):
    """The dot products of `values`, in double, with the first PROJECTIONS sign vectors."""
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    return [float(flat @ signs(flat.size, k)) for k in range(PROJECTIONS)]
