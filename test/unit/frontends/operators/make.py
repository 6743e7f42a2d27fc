"""Writes the cases of OnnxOperatorTest: a model in text format, inputs, and what they give.

    python test/unit/frontends/operators/make.py

The results are those of the reference implementation that the `onnx` package has. Inputs named as
constants are initializers of the model; `gradient` names those whose gradients the test checks.
"""

import os

import numpy as np
import onnx.parser
from google.protobuf import text_format
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

HERE = os.path.dirname(os.path.abspath(__file__))


def spell(array):
    return " ".join("%.9g" % v for v in np.asarray(array).reshape(-1))


def case(name, operator, inputs, constants=(), gradient=(), opset=22, outputs=("y",), domain="", made=None,
         **attributes):
    """`inputs` are pairs of a name and an array; an empty name is an input left out. `made` are results where the
    reference implementation is wrong."""
    node = helper.make_node(operator, [n for n, _ in inputs], list(outputs), domain=domain, **attributes)
    given = {n: np.asarray(a) for n, a in inputs if n}
    element = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in given.items()}
    free = [n for n in given if n not in constants]
    declared = [helper.make_tensor_value_info(n, element[n], given[n].shape) for n in free]
    stored = [numpy_helper.from_array(given[n], n) for n in constants]
    sets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])

    def model(results):
        graph = helper.make_graph([node], name, declared, results, stored)
        return helper.make_model(graph, opset_imports=sets, ir_version=10)

    outputs = [n for n in outputs if n]
    untyped = [helper.make_empty_tensor_value_info(n) for n in outputs]
    if made is None:
        made = ReferenceEvaluator(model(untyped)).run(None, {n: given[n] for n in free})
    typed = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
             for n, a in zip(outputs, made)]
    whole = model(typed)
    numbers = [(n, given[n]) for n in free] + list(zip(outputs, made))
    helper.set_model_props(whole, {**{n: spell(a) for n, a in numbers}, "gradient": " ".join(gradient)})
    with open(os.path.join(HERE, name + ".txt"), "w") as file:
        file.write(text_format.MessageToString(whole))


def graph(name, text, inputs, made, gradient=()):
    """A case of several nodes, `text` from the inputs to y, with the numbers that it should give."""
    made = np.asarray(made)
    arguments = ", ".join("float[%s] %s" % (",".join(map(str, a.shape)), n) for n, a in inputs)
    result = "float[%s] y" % ",".join(map(str, made.shape))
    model = onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 22]> g (%s) => (%s) { %s }' % (arguments, result, text))
    helper.set_model_props(model, {**{n: spell(a) for n, a in [*inputs, ("y", made)]}, "gradient": " ".join(gradient)})
    with open(os.path.join(HERE, name + ".txt"), "w") as file:
        file.write(text_format.MessageToString(model))


def taken_apart():
    """Functions whose parts have a narrower range than the whole."""
    wide = np.array([-1e4, -200.0, -89.0, -1.0, 0.0, 2.0, 89.0, 200.0], dtype=np.float32)
    half = np.float32(0.5)
    graph("log-sigmoid", "s = Sigmoid(x) y = Log(s)", [("x", wide)], -np.logaddexp(0, -wide.astype(np.float64)), ("x",))
    graph("log-add-exp", "a = Exp(x) b = Exp(z) c = Add(a, b) y = Log(c)", [("x", wide), ("z", half * wide)],
          np.logaddexp(wide.astype(np.float64), half * wide.astype(np.float64)), ("x", "z"))


def resized():
    draw = np.random.default_rng(22).uniform
    # A factor that isn't whole doesn't move the corners: as PyTorch and onnxruntime have it, unlike the reference.
    line = draw(-1, 1, (1, 1, 5)).astype(np.float32)
    given = [("x", line), ("", None), ("scales", np.array([1, 1, 1.7], dtype=np.float32))]
    made = np.interp(np.arange(8) * 4 / 7, np.arange(5), line[0, 0])
    case("resize-corners", "Resize", given, constants=("scales",), gradient=("x",), mode="linear", coordinate_transformation_mode="align_corners",
         made=[made.astype(np.float32).reshape(1, 1, 8)])
    # Ten times 0.7 is seven, though 0.7 is less in f32.
    line = draw(-1, 1, (1, 1, 10)).astype(np.float32)
    given = [("x", line), ("", None), ("scales", np.array([1, 1, 0.7], dtype=np.float32))]
    made = np.interp(np.clip((np.arange(7) + 0.5) / 0.7 - 0.5, 0, 9), np.arange(10), line[0, 0])
    case("resize-rounded", "Resize", given, constants=("scales",), gradient=("x",), mode="linear", made=[made.astype(np.float32).reshape(1, 1, 7)])


def main():
    taken_apart()
    resized()
    random = np.random.default_rng(21)

    def draw(*shape, low=-1.0, high=1.0):
        return random.uniform(low, high, shape).astype(np.float32)

    def ints(*values):
        return np.array(values, dtype=np.int64)

    # Places away from whole numbers, where the gradient has a step.
    image, grid = draw(2, 2, 3, 4), draw(2, 2, 3, 2, low=-1.3, high=1.3)
    for mode in ("linear", "cubic"):
        for beyond in ("zeros", "border", "reflection"):
            case("grid-%s-%s" % (mode, beyond), "GridSample", [("x", image), ("grid", grid)], gradient=("x", "grid"),
                 mode=mode, padding_mode=beyond, align_corners=int(beyond == "border"))
    case("grid-nearest", "GridSample", [("x", image), ("grid", grid)], gradient=("x",), mode="nearest")
    case("grid-volume", "GridSample", [("x", draw(1, 2, 2, 3, 3)), ("grid", draw(1, 2, 1, 2, 3))],
         gradient=("x", "grid"))
    case("affine-grid", "AffineGrid", [("theta", draw(2, 2, 3)), ("size", ints(2, 1, 2, 3))], constants=("size",),
         gradient=("theta",))
    boxes = np.array([[0.4, 0.3, 3.2, 2.6], [1.1, 0.2, 2.9, 3.1]], dtype=np.float32)
    for mode in ("avg", "max"):
        case("roi-" + mode, "RoiAlign", [("x", image), ("rois", boxes), ("image", ints(1, 0))], mode=mode,
             gradient=("x", "rois") if mode == "avg" else (), output_height=2, output_width=2, sampling_ratio=2,
             spatial_scale=0.8)
    case("deform-conv", "DeformConv",
         [("x", draw(1, 4, 4, 5)), ("w", draw(2, 2, 2, 2)), ("offset", draw(1, 16, 2, 5, low=-0.4, high=0.4)),
          ("b", draw(2)), ("mask", draw(1, 8, 2, 5))],
         gradient=("x", "w", "offset", "b", "mask"), kernel_shape=[2, 2], group=2, offset_group=2, pads=[0, 0, 1, 1],
         strides=[2, 1], dilations=[2, 1])

    resize = [("x", draw(1, 1, 4, 5)), ("", None), ("scales", np.array([1, 1, 0.6, 0.7], dtype=np.float32))]
    for mode in ("linear", "cubic"):
        case("resize-antialias-" + mode, "Resize", resize, constants=("scales",), gradient=("x",), mode=mode,
             antialias=1)
    case("resize-symmetric", "Resize", resize, constants=("scales",), gradient=("x",), mode="linear",
         coordinate_transformation_mode="half_pixel_symmetric")
    crop = np.array([0, 0, 0.2, -0.3, 1, 1, 0.9, 0.8], dtype=np.float32)
    case("resize-crop", "Resize",
         [("x", draw(1, 1, 4, 5)), ("roi", crop), ("", None), ("sizes", ints(1, 1, 3, 4))], constants=("roi", "sizes"),
         gradient=("x",), mode="linear", coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=10.0)
    case("resize-aspect", "Resize", [("x", draw(1, 1, 2, 4)), ("", None), ("", None), ("sizes", ints(7, 8))],
         constants=("sizes",), gradient=("x",), mode="linear", axes=[2, 3], keep_aspect_ratio_policy="not_larger")

    volume = draw(1, 2, 4, 5, 6)
    case("conv-volume", "Conv", [("x", volume), ("w", draw(4, 1, 2, 3, 2)), ("b", draw(4))], gradient=("x", "w", "b"),
         group=2, strides=[1, 2, 1], dilations=[2, 1, 1], pads=[1, 0, 2, 0, 1, 0])
    case("conv-transpose-volume", "ConvTranspose", [("x", draw(1, 2, 2, 3, 2)), ("w", draw(2, 2, 3, 2, 2))],
         gradient=("x", "w"), strides=[2, 1, 2], pads=[1, 0, 0, 1, 1, 0], output_padding=[1, 0, 0])
    case("max-pool-volume", "MaxPool", [("x", volume)], gradient=("x",), kernel_shape=[2, 3, 2], strides=[2, 2, 1],
         pads=[0, 1, 0, 0, 1, 1])
    case("average-pool-volume", "AveragePool", [("x", volume)], gradient=("x",), kernel_shape=[2, 3, 2],
         strides=[2, 2, 1], pads=[0, 1, 0, 0, 1, 1])
    # Windows of the last row and column leave the padded image, whose elements alone count; the reference counts others.
    square = draw(1, 1, 6, 5)
    padded = np.pad(square[0, 0], ((1, 0), (1, 0)))
    means = [[padded[i:i + 3, j:j + 3].mean() for j in (0, 2, 4)] for i in (0, 3, 6)]
    case("average-pool-ceil", "AveragePool", [("x", square)], gradient=("x",), kernel_shape=[3, 3], strides=[3, 2],
         pads=[1, 1, 0, 0], ceil_mode=1, count_include_pad=1, made=[np.array(means).reshape(1, 1, 3, 3).astype(np.float32)])
    case("lp-pool", "LpPool", [("x", draw(1, 2, 5, 4, low=0.5))], gradient=("x",), kernel_shape=[3, 2], p=3,
         pads=[1, 0, 0, 1])
    case("max-pool-places", "MaxPool", [("x", draw(2, 2, 4, 5))], outputs=("y", "places"), gradient=("x",),
         kernel_shape=[2, 3], strides=[2, 1], pads=[0, 1, 0, 1])
    ties = np.array([[1, 1, 0, 2], [2, 1, 2, 0], [2, 2, 1, 1]], dtype=np.float32).reshape(1, 1, 3, 4)
    # Of equal elements, the first by rows; the reference counts these windows wrongly.
    firsts = [max(((ties[0, 0, h + i, w + j], -i, -j) for i in (0, 1) for j in (0, 1))) for h in (0, 1) for w in range(3)]
    at = [(k // 3 - i, k % 3 - j) for k, (_, i, j) in enumerate(firsts)]
    most = np.array([v for v, _, _ in firsts], dtype=np.float32).reshape(1, 1, 2, 3)
    for order in (0, 1):
        stands = ints(*(w * 3 + h if order else h * 4 + w for h, w in at)).reshape(1, 1, 2, 3)
        case("max-pool-ties-%d" % order, "MaxPool", [("x", ties)], outputs=("y", "places"), made=[most, stands],
             kernel_shape=[2, 2], storage_order=order)
    places = ints(5, 7, 13, 15, 21, 18, 25, 30).reshape(1, 2, 2, 2)
    case("max-unpool", "MaxUnpool", [("x", draw(1, 2, 2, 2)), ("places", places)], gradient=("x",), kernel_shape=[2, 2],
         strides=[2, 2])
    case("col2im", "Col2Im", [("x", draw(1, 8, 9)), ("image", ints(4, 4)), ("block", ints(2, 2))],
         constants=("image", "block"), gradient=("x",), strides=[1, 2], dilations=[2, 1], pads=[0, 1, 1, 1])

    for kind, element in (("bool", np.bool_), ("whole", np.int32), ("float", np.float32)):
        for extreme in ("Max", "Min"):
            case("reduce-%s-nothing-%s" % (extreme.lower(), kind), "Reduce" + extreme,
                 [("x", np.zeros((0, 2), dtype=element)), ("axes", ints(0))], constants=("x", "axes"), opset=20)
    mod = np.array([[-5, 5, -0.0, 7.5], [np.inf, -3, 3, 2]], dtype=np.float32)
    by = np.array([[np.inf, -np.inf, 3, -2], [2, np.inf, -3, 0]], dtype=np.float32)
    case("mod-infinite", "Mod", [("a", mod), ("b", by)], fmod=0)
    case("mod", "Mod", [("a", draw(6, low=-5, high=5)), ("b", np.array([2, 2, -3, -3, 0.7, -0.7], dtype=np.float32))],
         gradient=("a", "b"), fmod=0)

    sizes = [("query", draw(2, 3, 8)), ("key", draw(2, 3, 4)), ("value", draw(2, 3, 6)), ("state", draw(2, 2, 2, 3))]
    decay, beta = [("decay", draw(2, 3, 4))], [("beta", draw(2, 3, 2, low=0.1))]
    for rule, more in (("linear", []), ("gated", decay), ("delta", [("", None)] + beta), ("gated_delta", decay + beta)):
        case("linear-attention-" + rule.replace("_", "-"), "LinearAttention", sizes + more, opset=27,
             outputs=("y", "present"), gradient=[n for n, _ in sizes + more if n], q_num_heads=4, kv_num_heads=2,
             update_rule=rule)
    case("linear-attention-shared", "LinearAttention",
         sizes[:3] + [("", None), ("decay", draw(2, 3, 2)), ("beta", draw(2, 3, 1, low=0.1))], opset=27,
         outputs=("y", "present"), gradient=("query", "key", "value", "decay", "beta"), q_num_heads=4, kv_num_heads=2,
         scale=0.7)
    conv = [("x", draw(2, 3, 4)), ("w", draw(3, 1, 3)), ("b", draw(3)), ("past", draw(2, 3, 2))]
    case("causal-conv", "CausalConvWithState", conv, opset=27, outputs=("y", "present"),
         gradient=("x", "w", "b", "past"), activation="silu")
    case("causal-conv-fresh", "CausalConvWithState", conv[:2], opset=27, outputs=("y", "present"), gradient=("x", "w"))
    for mode, starts in (("linear", (1, 0)), ("circular", (4, 2))):
        case("tensor-scatter-" + mode, "TensorScatter",
             [("past", draw(2, 5, 2)), ("update", draw(2, 3, 2)), ("places", ints(*starts))], opset=24, mode=mode,
             gradient=("past", "update"), axis=1)
    qkv = [("q", draw(2, 4, 3, 4)), ("k", draw(2, 2, 5, 4)), ("v", draw(2, 2, 5, 3))]
    lengths = [("", None), ("", None), ("", None), ("lengths", ints(4, 2))]
    case("attention-lengths", "Attention", qkv + lengths, opset=24, gradient=("q", "k", "v"), is_causal=1)
    case("attention-lengths-window", "Attention",
         qkv[:2] + [("v", draw(2, 2, 5, 4)), ("mask", draw(3, 4))] + lengths[1:], opset=25, gradient=("q", "k", "v"),
         left_window_size=1, right_window_size=1)
    for mode in range(1, 4):
        case("attention-scores-%d" % mode, "Attention", qkv + [("mask", draw(3, 5))], opset=24,
             outputs=("y", "", "", "scores"), gradient=("q", "k", "v", "mask"), qk_matmul_output_mode=mode, softcap=1.5)
    case("attention-scores-0", "Attention", qkv, opset=24, outputs=("y", "", "", "scores"), gradient=("q", "k"))
    seen = np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 1]], dtype=bool)
    case("attention-scores-empty", "Attention", qkv + [("mask", seen)], opset=24, outputs=("y", "", "", "scores"),
         gradient=("q", "k", "v"), constants=("mask",), qk_matmul_output_mode=3)

    def body(name, text):
        graph = onnx.parser.parse_graph(text)
        graph.name = name
        return graph

    shape = "float[2,4,3,5]"
    flex = [("q", qkv[0][1]), ("k", qkv[1][1]), ("v", qkv[2][1])]
    case("flex-attention", "FlexAttention", flex, opset=26, domain="ai.onnx.preview", gradient=("q", "k", "v"),
         score_mod=body("s", "s (%s x) => (%s z) <float half = {0.5}> { t = Tanh(x) z = Mul(t, half) }" % (shape, shape)),
         prob_mod=body("p", "p (%s x) => (%s z) { z = Mul(x, x) }" % (shape, shape)))
    case("flex-attention-plain", "FlexAttention", flex, opset=26, domain="ai.onnx.preview", gradient=("q", "k", "v"),
         scale=0.4)
    case("center-crop-pad", "CenterCropPad", [("x", draw(2, 4, 3)), ("shape", ints(7, 1))], constants=("shape",),
         gradient=("x",), axes=[1, -1])

    axis = ("axis", np.array(-2, dtype=np.int64))
    signal = draw(2, 5, 3, 2)
    for name, inputs, more in (
            ("real", [("x", signal[..., :1]), ("", None), axis], dict(onesided=1)),
            ("complex", [("x", signal), ("points", np.array(4, dtype=np.int64)), ("axis", np.array(1))], {}),
            ("inverse", [("x", signal), ("points", np.array(7, dtype=np.int64)), ("axis", np.array(1))],
             dict(inverse=1)),
            ("inverse-real", [("x", signal), ("", None), axis], dict(inverse=1, onesided=1)),
            ("inverse-real-odd", [("x", signal), ("points", np.array(5, dtype=np.int64)), axis],
             dict(inverse=1, onesided=1))):
        constants = [n for n, _ in inputs[1:] if n]
        case("dft-" + name, "DFT", inputs, constants=constants, gradient=("x",), opset=20, **more)
    case("dft-older", "DFT", [("x", signal)], gradient=("x",), opset=17, axis=2)
    case("stft", "STFT",
         [("x", draw(2, 9, 1)), ("step", np.array(2, dtype=np.int64)), ("window", draw(4, low=0.2))],
         constants=("step",), gradient=("x", "window"), onesided=1)
    mel = [("bands", 4), ("points", 16), ("rate", 8192)]
    edges = [("low", np.array(0, dtype=np.float32)), ("high", np.array(4096, dtype=np.float32))]
    case("mel-weights", "MelWeightMatrix", [(n, np.array(v, dtype=np.int64)) for n, v in mel] + edges,
         constants=("bands", "points", "rate", "low", "high"))
    for n in (1, 2, 4):
        case("det-%d" % n, "Det", [("x", draw(2, n, n))], gradient=("x",))
    case("einsum-diagonal", "Einsum", [("x", draw(3, 2, 3))], gradient=("x",), equation="iji->ij")
    case("einsum-trace", "Einsum", [("x", draw(3, 2, 3)), ("w", draw(2, 2))], gradient=("x", "w"),
         equation="iji,jj->i")
    rows = np.array([[2, 3, 4], [1, 0, 0], [1, 0, 0], [0, 5, 5]], dtype=np.int64)
    case("unique-rows", "Unique", [("x", rows)], constants=("x",), outputs=("y", "first", "which", "counts"), axis=0)
    case("unique-unsorted", "Unique", [("x", rows)], constants=("x",), outputs=("y", "first", "which", "counts"),
         axis=0, sorted=0)
    grams = dict(max_gram_length=3, ngram_counts=[0, 2, 6], ngram_indexes=[0, 3, 1, 4, 2, 2],
                 pool_int64s=[2, 5, 1, 2, 5, 5, 3, 1, 2, 5, 5, 7])
    tokens = ints(1, 2, 3, 5, 5, 1, 2, 1, 5, 2, 5, 5, 7, 2).reshape(2, 7)
    for mode in ("TF", "IDF", "TFIDF"):
        case("ngrams-" + mode.lower(), "TfIdfVectorizer", [("x", tokens)], mode=mode, min_gram_length=1,
             max_skip_count=2, weights=[0.5, 2.0, 3.0, 1.5, 0.25], **grams)
    case("ngrams-line", "TfIdfVectorizer", [("x", tokens[0])], mode="TF", min_gram_length=2, max_skip_count=0, **grams)
    case("bits", "BitCast", [("x", np.array([1065353216, -1073741824, 1], dtype=np.int32))], constants=("x",), opset=26,
         to=TensorProto.FLOAT)
    case("binarizer", "Binarizer", [("x", np.array([-1, 0.125, 0.25, 0.5], dtype=np.float32))], domain="ai.onnx.ml",
         threshold=0.25)
    case("columns", "ArrayFeatureExtractor", [("x", draw(2, 4)), ("at", ints(3, 1))], constants=("at",),
         gradient=("x",), domain="ai.onnx.ml")
    case("optional", "OptionalGetElement", [("x", draw(2, 2))], gradient=("x",))
    # Lengths without anything else that hides keys, and a mask that names fewer keys than there are.
    case("attention-lengths-alone", "Attention", qkv + lengths, opset=24, gradient=("q", "k", "v"))
    case("attention-mask-short", "Attention", qkv + [("mask", draw(3, 4))], opset=24, gradient=("q", "k", "v"))
    # Far from zero, where parts of a formula overflow in f32; and rows of equal elements.
    far = np.array([[-1e4, -1000, -100, -89], [-3, 88, 89, 100], [1000, 1e4, 0.5, -1]], dtype=np.float32)
    for operator, opset in (("Sigmoid", 22), ("Softplus", 22), ("Tanh", 22), ("Mish", 22), ("Gelu", 22), ("Elu", 22),
                            ("HardSwish", 22), ("Swish", 24), ("Softsign", 22), ("Erf", 22), ("Softmax", 22)):
        made = [(far / (1 + np.exp(-far.astype(np.float64)))).astype(np.float32)] if operator == "Swish" else None
        case("far-" + operator.lower(), operator, [("x", far)], gradient=("x",), opset=opset, made=made)
    rows = np.array([[0, 0, 0], [1, 1, 1], [3, 0, 4]], dtype=np.float32)
    case("rows-l2", "ReduceL2", [("x", rows), ("axes", ints(1))], constants=("axes",), gradient=("x",))
    case("rows-log-sum-exp", "ReduceLogSumExp", [("x", rows), ("axes", ints(1))], constants=("axes",), gradient=("x",))


if __name__ == "__main__":
    main()
