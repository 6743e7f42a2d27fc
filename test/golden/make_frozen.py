"""Make frozen.safetensors with bitsandbytes 0.50.2 on the cpu; README.md ("Frozen storage") has the format.

Needs torch, bitsandbytes, safetensors and numpy. `nf4`, `nested` and `rows` below are a second model of the formats, in
NumPy alone. The script compares it with bitsandbytes before it writes a file: all bits but those that it prints.
"""

import os
import sys

import numpy
import torch
from bitsandbytes import functional
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = dict(f32=torch.float32, bf16=torch.bfloat16, f16=torch.float16)
BLOCK, NESTED = 64, 256
LEAST = numpy.float32(1e-38)  # The least divisor.
LEVELS = functional.get_4bit_type("nf4", device="cpu").numpy()
MAP = functional.create_dynamic_map(signed=True).numpy()
FAR = []  # For each matrix: codes of maxima that differ from bitsandbytes' table, and all.
RECIPROCAL = numpy.float32(7.874015718698502e-3)


def codes_of(values, map):
    """The number of midpoints below each value."""
    return numpy.searchsorted((map[:-1] + map[1:]) / numpy.float32(2), values, side="left").astype(numpy.uint8)


def nf4(values):
    """Codes, two to a byte, and the maximum of each block."""
    blocks = values.reshape(-1, BLOCK)
    absmax = numpy.abs(blocks).max(1)
    inverse = numpy.float32(1) / numpy.maximum(absmax, LEAST)
    codes = codes_of(blocks * inverse[:, None], LEVELS).reshape(-1)
    return codes[::2] << 4 | codes[1::2], absmax


def mean(absmax):
    """Summed up in double and in order."""
    return numpy.float32(numpy.add.accumulate(absmax.astype(numpy.float64))[-1] / len(absmax))


def nested(absmax, offset):
    """Codes of the maxima and the maxima of their blocks."""
    moved = absmax - offset
    codes, scales = [], []
    for at in range(0, len(moved), NESTED):
        block = moved[at:at + NESTED]
        scales.append(numpy.abs(block).max())
        codes.append(codes_of(block * (numpy.float32(1) / numpy.maximum(scales[-1], LEAST)), MAP))
    return numpy.concatenate(codes), numpy.array(scales, numpy.float32)


def unnested(codes, scales, offset):
    return MAP[codes] * numpy.repeat(scales, NESTED)[:len(codes)] + offset


def values_of(packed, absmax):
    codes = numpy.stack([packed >> 4, packed & 15], 1).reshape(-1, BLOCK)
    return (LEVELS[codes] * absmax[:, None]).reshape(-1)


def rows(values):
    """Codes of 8 bits and the maximum of each row."""
    most = numpy.abs(values).max(1)
    with numpy.errstate(divide="ignore", over="ignore"):
        # As torch computes 127 / most.
        factor = numpy.minimum(numpy.float32(1) / most * numpy.float32(127), numpy.finfo(numpy.float32).max)
    return numpy.rint(values * factor[:, None]).astype(numpy.int8), most


def same(mine, theirs, what):
    mine, theirs = (each.view(numpy.uint32) if each.dtype == numpy.float32 else each for each in (mine, theirs))
    if not numpy.array_equal(mine, theirs):
        sys.exit("%s: %d of %d differ" % (what, (mine != theirs).sum(), mine.size))


def same_values(mine, theirs, what):
    """Bit for bit, but where a number is below the normal ones of f32: libraries for AVX512-BF16 make those zero."""
    rounded = torch.from_numpy(mine).to(theirs.dtype).reshape(-1)
    bits = torch.int32 if theirs.dtype == torch.float32 else torch.int16
    wrong = (rounded.view(bits) != theirs.reshape(-1).view(bits)).numpy() & (numpy.abs(mine) >= numpy.finfo(numpy.float32).tiny)
    if wrong.any():
        sys.exit("%s: %d of %d differ" % (what, wrong.sum(), mine.size))
    return rounded


def edges(like):
    """Blocks that are rare: zero, outliers, numbers below the normal ones, halves of ties, large numbers."""
    draw = torch.Generator().manual_seed(7)
    normal = lambda scale: torch.randn(BLOCK, generator=draw).double() * scale
    middle = torch.from_numpy((LEVELS[:-1] + LEVELS[1:]) / numpy.float32(2)).to(like)
    bits = torch.int32 if like == torch.float32 else torch.int16
    near = torch.cat([middle] + [(middle.view(bits) + step).view(like) for step in (-1, 1)] + [torch.ones(1, dtype=like)] * 19)
    tiny = torch.finfo(like).smallest_normal
    outlier = normal(0.02)
    outlier[9] = 30
    signs = torch.tensor([0.25, -0.25]).repeat(32)
    signed_zero = normal(0.02)
    signed_zero[::3] = -0.0
    blocks = [torch.zeros(BLOCK), outlier, normal(tiny / 4), normal(tiny), normal(4 * tiny), signs, signs.abs(), signed_zero,
              normal(torch.finfo(like).max / 8), torch.eye(BLOCK)[40] * tiny / 64]
    blocks = [block.to(like) for block in blocks] + [near, near * 0.125, near * 3, -near]
    return torch.stack(blocks + [normal(1).to(like)] * 2)


def store_nf4(out, name, matrix, is_nested):
    packed, state = functional.quantize_4bit(matrix, quant_type="nf4", compress_statistics=False)
    values = matrix.float().numpy().reshape(-1)
    mine, absmax = nf4(values)
    same(mine, packed.numpy().reshape(-1), name + ".packed")
    same(absmax, state.absmax.numpy(), name + ".absmax")
    out[name + ".matrix"], out[name + ".packed"], out[name + ".absmax"] = matrix, packed.reshape(-1), state.absmax
    for title, type in TYPES.items():
        state.dtype = type
        theirs = functional.dequantize_4bit(packed, state)
        values = same_values(values_of(mine, absmax), theirs, name + " as " + title)
        if not is_nested:
            out["%s.as_%s" % (name, title)] = values
    if not is_nested:
        return
    _, state = functional.quantize_4bit(matrix, quant_type="nf4", compress_statistics=True)
    offset = numpy.float32(state.offset)  # torch sums up in single precision.
    if abs(mean(absmax) - offset) > 2 * numpy.spacing(offset):
        sys.exit(name + ": the offset is off")
    codes, scales = nested(absmax, offset)
    theirs = state.absmax.numpy().astype(int)
    off = numpy.abs(theirs - codes)
    print("%s: codes of absmax: %d of %d differ from bitsandbytes' table, by %d at most; bitsandbytes' offset %r, in double %r" % (
        name, (off > 0).sum(), off.size, off.max(), float(offset), float(mean(absmax))))
    # Near zero several codes lie in one of the table's 65,536 bins.
    if (off > 1).any() and numpy.abs(MAP[codes] - MAP[theirs])[off > 1].max() > 2 / 65536:
        sys.exit("a code is more than one off")
    FAR.append((int((off > 0).sum()), off.size))
    same(scales, state.state2.absmax.numpy(), name + ".nested")
    # The values of bitsandbytes' own codes: what a checkpoint is read as.
    theirs_absmax = unnested(state.absmax.numpy(), scales, offset)
    codes, scales = nested(absmax, mean(absmax))
    out[name + ".their_nested"] = torch.from_numpy(numpy.append(state.state2.absmax.numpy(), offset))
    out[name + ".codes"], out[name + ".their_codes"] = torch.from_numpy(codes), state.absmax
    out[name + ".nested"] = torch.from_numpy(numpy.append(scales, mean(absmax)))
    for title, type in TYPES.items():
        state.dtype = type
        values = functional.dequantize_4bit(packed, state)
        out["%s.nested_as_%s" % (name, title)] = same_values(values_of(mine, theirs_absmax), values, name + " nested as " + title)


def store_rows(out, name, matrix):
    codes, most, _ = torch.ops.bitsandbytes.int8_vectorwise_quant.default(matrix.clone(), 0.0)
    mine, mine_most = rows(matrix.float().numpy())
    some = mine_most > 1e-36  # Below, the library's factor is infinite.
    same(mine[some | (mine_most == 0)], codes.numpy()[some | (mine_most == 0)], name + ".codes")
    same(mine_most, most.numpy(), name + ".most")
    theirs = functional.int8_vectorwise_dequant(torch.from_numpy(mine), most)
    values = mine.astype(numpy.float32) * mine_most[:, None] * RECIPROCAL
    same(values, theirs.numpy(), name + " back")
    out[name + ".matrix"], out[name + ".codes"], out[name + ".most"] = matrix, torch.from_numpy(mine), most
    for title, type in TYPES.items():
        out["%s.as_%s" % (name, title)] = theirs.to(type)


def main():
    torch.set_num_threads(1)
    out = {"levels": torch.from_numpy(LEVELS.copy()), "map": torch.from_numpy(MAP.copy())}
    for name, type in TYPES.items():
        draw = torch.Generator().manual_seed(len(name))
        store_nf4(out, "edges_" + name, edges(type), False)
        rows_high = 68 if type == torch.float32 else 16  # 272 blocks: two of their maxima, one of them short.
        matrix = torch.randn(rows_high, 256, generator=draw) * 0.02
        matrix[3, 64:128] = 0
        matrix[5, 70] = 0.5
        store_nf4(out, "normal_" + name, matrix.to(type), True)
        matrix = torch.randn(8, 72, generator=draw)
        matrix[1] = 0
        matrix[2, 5] = 100
        matrix[3] = torch.arange(72) - 40.5  # Halves,
        matrix[3, 0] = 127                   # by a factor of one.
        matrix[4] *= 1e-6
        matrix[5] = torch.tensor([1.0, -1.0]).repeat(36)
        if type != torch.float16:
            matrix[6] *= 1e-39
        store_rows(out, "rows_" + name, matrix.to(type))
    large = torch.randn(4096, 1024, generator=torch.Generator().manual_seed(1)) * 0.02
    large[::512, ::96] *= 20
    store_nf4({}, "large", large, True)
    if sum(far for far, _ in FAR) > 0.01 * sum(all for _, all in FAR):
        sys.exit("more than 1 % of the codes differ")
    path = os.path.join(HERE, "frozen.safetensors")
    save_file({key: value.contiguous() for key, value in out.items()}, path)
    os.chmod(path, 0o644)


main()
