"""Make the image sets: synthetic, so that they may be redistributed, and learnable.

shapes-image.npy  float32 [256, 3, 24, 24]: one shape in one colour on a coloured, noisy ground
shapes-label.npy  int64 [256]: which of eight shapes
digits-image.npy  float32 [320, 784]: a seven-segment digit, moved and sheared, on a noisy ground
digits-label.npy  int64 [320]
Values are multiples of 1/64, so that the files compress.
"""

import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SEGMENTS = ["abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg"]
LINES = {  # Ends of each segment, x to the right and y down, in a box of 1 by 2.
    "a": ((0, 0), (1, 0)), "b": ((1, 0), (1, 1)), "c": ((1, 1), (1, 2)), "d": ((0, 2), (1, 2)),
    "e": ((0, 1), (0, 2)), "f": ((0, 0), (0, 1)), "g": ((0, 1), (1, 1)),
}


def shape_mask(kind, size, rng):
    """Which pixels of a size x size image the shape covers."""
    y, x = np.mgrid[0:size, 0:size].astype(np.float64)
    radius = rng.uniform(5, 8)
    u = (x - rng.uniform(radius, size - 1 - radius)) / radius
    v = (y - rng.uniform(radius, size - 1 - radius)) / radius
    disc = u * u + v * v
    return [
        disc <= 1,
        (disc <= 1) & (disc >= 0.4),
        (abs(u) <= 0.8) & (abs(v) <= 0.8),
        (abs(u) <= 0.8) & (abs(v) <= 0.8) & ((abs(u) >= 0.45) | (abs(v) >= 0.45)),
        abs(u) + abs(v) <= 1,
        (v <= 0.8) & (v >= 2 * abs(u) - 1),
        ((abs(u) <= 0.3) & (abs(v) <= 1)) | ((abs(v) <= 0.3) & (abs(u) <= 1)),
        (abs(u) <= 1) & (abs(v) <= 1) & (np.floor((v + 1) * 2.5) % 2 == 0),
    ][kind]


def shapes(count, rng):
    labels = rng.integers(8, size=count)
    images = np.empty((count, 3, 24, 24))
    for image, label in zip(images, labels):
        ground, colour = rng.uniform(-1, 1, (2, 3, 1, 1))
        colour = np.where(abs(colour - ground) < 0.5, ground + np.sign(colour - ground + 1e-9), colour)
        image[:] = np.where(shape_mask(label, 24, rng), colour, ground) + rng.normal(0, 0.1, image.shape)
    return images, labels


def digits(count, rng):
    labels = rng.integers(10, size=count)
    images = np.empty((count, 28, 28))
    y, x = np.mgrid[0:28, 0:28]
    for image, label in zip(images, labels):
        width, left, top, shear = rng.uniform(7, 10), rng.uniform(6, 11), rng.uniform(3, 6), rng.uniform(-0.2, 0.3)
        ink = np.zeros((28, 28))
        for name in SEGMENTS[label]:
            (x0, y0), (x1, y1) = LINES[name]
            a = np.array([left + width * x0 - shear * width * y0, top + width * y0])
            b = np.array([left + width * x1 - shear * width * y1, top + width * y1])
            t = np.clip(((x - a[0]) * (b - a)[0] + (y - a[1]) * (b - a)[1]) / ((b - a) @ (b - a)), 0, 1)
            distance = np.hypot(x - a[0] - t * (b - a)[0], y - a[1] - t * (b - a)[1])
            ink = np.maximum(ink, np.clip(2 - distance, 0, 1))
        image[:] = ink + rng.normal(0, 0.05, image.shape)
    return images.reshape(count, 784), labels


if __name__ == "__main__":
    for name, make, count in (("shapes", shapes, 256), ("digits", digits, 320)):
        images, labels = make(count, np.random.default_rng(0))
        np.save(os.path.join(HERE, f"{name}-image.npy"), (np.round(images * 64) / 64).astype(np.float32))
        np.save(os.path.join(HERE, f"{name}-label.npy"), labels.astype(np.int64))
