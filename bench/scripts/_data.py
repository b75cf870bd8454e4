"""Make the small data sets that the public scripts ask for.

Nothing is downloaded: digits are drawn as seven-segment displays with noise (they can be
learnt, so losses fall), the text is the topic help that ships with Python. The sizes are
small on purpose: the scripts are here for their shape, not for their accuracy.
"""

import gzip
import random
import struct
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics

__all__ = ["TEST_IMAGES", "TRAIN_IMAGES", "write_idx_digits", "write_keras_digits", "write_text"]

TRAIN_IMAGES = 2000
TEST_IMAGES = 1000
_SIDE = 28
_SEGMENTS = (
    "abcdef",
    "bc",
    "abdeg",
    "abcdg",
    "bcfg",
    "acdfg",
    "acdefg",
    "abc",
    "abcdefg",
    "abcdfg",
)
# x, y, width and height of each segment inside a box of 12 x 21 pixels.
_STROKES = {
    "a": (0, 0, 12, 3),
    "b": (9, 0, 3, 11),
    "c": (9, 10, 3, 11),
    "d": (0, 18, 12, 3),
    "e": (0, 10, 3, 11),
    "f": (0, 0, 3, 11),
    "g": (0, 9, 12, 3),
}


def _draw(digit: int, left: int, top: int) -> bytearray:
    image = bytearray(_SIDE * _SIDE)
    for name in _SEGMENTS[digit]:
        x, y, width, height = _STROKES[name]
        for row in range(top + y, top + y + height):
            start = row * _SIDE + left + x
            image[start : start + width] = b"\xe0" * width
    return image


def _images(count: int, seed: int) -> tuple[bytes, bytes]:
    source = random.Random(seed)  # noqa: S311 - noise, not a secret
    stamps = {
        (digit, left, top): _draw(digit, left, top)
        for digit in range(10)
        for left in range(5, 12)
        for top in range(1, 7)
    }
    pixels, labels = bytearray(), bytearray()
    for _ in range(count):
        digit = source.randrange(10)
        stamp = stamps[digit, source.randrange(5, 12), source.randrange(1, 7)]
        noise = source.randbytes(len(stamp))
        pixels += bytes(max(ink, grain >> 3) for ink, grain in zip(stamp, noise, strict=True))
        labels.append(digit)
    return bytes(pixels), bytes(labels)


def _write_idx(folder: Path, ending: str, write: Callable[[Path, bytes], None]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (part, count) in enumerate((("train", TRAIN_IMAGES), ("t10k", TEST_IMAGES))):
        pixels, labels = _images(count, seed)
        head = struct.pack(">IIII", 0x0803, count, _SIDE, _SIDE)
        write(folder / f"{part}-images-idx3-ubyte{ending}", head + pixels)
        head = struct.pack(">II", 0x0801, count)
        write(folder / f"{part}-labels-idx1-ubyte{ending}", head + labels)


def write_idx_digits(root: Path) -> None:
    """Write the four files that ``torchvision.datasets.MNIST(root)`` looks for.

    Args:
        root: The data set's root; the files go to ``MNIST/raw`` below it.
    """
    _write_idx(root / "MNIST" / "raw", "", lambda path, data: _discard(path.write_bytes(data)))


def write_keras_digits(keras_home: Path) -> None:
    """Write the four files that ``keras.datasets.fashion_mnist`` looks for.

    Keras checks the hash of its MNIST file but none of these, so that these load offline.

    Args:
        keras_home: What ``KERAS_HOME`` will say.
    """
    folder = keras_home / "datasets" / "fashion-mnist"
    _write_idx(folder, ".gz", lambda path, data: _discard(path.write_bytes(gzip.compress(data, 1))))


def _discard(_written: int) -> None:
    """Drop the count of bytes that ``write_bytes`` returns."""


def write_text(path: Path) -> None:
    """Write some 600 kB of English: the help on Python's language, as ASCII.

    Args:
        path: The file; its folder is made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join(topics[name] for name in sorted(topics))
    path.write_bytes(text.encode("ascii", "replace"))
