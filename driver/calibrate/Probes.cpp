#include "driver/calibrate/Probes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace tmc;

namespace {

using Shape = std::vector<int64_t>;

/// Writes one forward function, value by value.
class Writer {
public:
  static std::string type(const Shape &shape, const char *element = "f32") {
    std::string text = "tensor<";
    for (int64_t size : shape)
      text += std::to_string(size) + "x";
    return text + element + ">";
  }

  std::string argument(const std::string &name, const Shape &shape,
                       const char *role, const char *init = "",
                       const char *element = "f32") {
    std::string id = "%" + name;
    std::string attrs =
        "train.name = \"" + name + "\", train.role = #train.role<" + role + ">";
    if (*init)
      attrs += std::string(", train.init = \"") + init + "\"";
    arguments.push_back(id + ": " + type(shape, element) + " {" + attrs + "}");
    return id;
  }
  std::string weight(const std::string &name, const Shape &shape,
                     const char *init = "normal") {
    return argument(name, shape, "param", init);
  }

  /// A value with the text that makes it; the first value if the text makes
  /// several.
  std::string value(const std::string &text, int results = 1) {
    std::string id = "%v" + std::to_string(count++);
    std::string number = ":" + std::to_string(results);
    body += "    " + id + (results > 1 ? number : "") + " = " + text + "\n";
    return results > 1 ? id + "#0" : id;
  }
  std::string constant(const std::string &number, const Shape &shape,
                       const char *element = "f32") {
    return value("arith.constant dense<" + number +
                 "> : " + type(shape, element));
  }
  std::string reshape(const std::string &x, const Shape &from, const Shape &to,
                      const char *element = "f32") {
    return value("nn.reshape " + x + " : (" + type(from, element) + ") -> " +
                 type(to, element));
  }
  std::string matmul(const std::string &x, const std::string &name,
                     int64_t rows, int64_t in, int64_t out) {
    std::string w = weight(name, {in, out});
    std::string b = weight(name + "_bias", {out}, "zeros");
    return value("nn.matmul " + x + ", " + w + " bias(" + b + ") : (" +
                 type({rows, in}) + ", " + type({in, out}) + ", " +
                 type({out}) + ") -> " + type({rows, out}));
  }
  std::string norm(const std::string &x, const std::string &name,
                   const Shape &shape) {
    std::string scale = weight(name + "_scale", {shape.back()}, "ones");
    std::string shift = weight(name + "_shift", {shape.back()}, "zeros");
    return value("nn.layer_norm " + x + " scale(" + scale + ") shift(" + shift +
                 ") {epsilon = 1.0e-5 : f64} : (" + type(shape) + ", " +
                 type({shape.back()}) + ", " + type({shape.back()}) + ") -> " +
                 type(shape));
  }
  /// Dropout of a tenth; seed, step and samples are the step's own inputs.
  std::string dropout(const std::string &x, const Shape &shape) {
    std::string u = value(
        "nn.random %seed, %samples {stream = " + std::to_string(stream++) +
        " : i64} : (tensor<2xi64>, " + type({shape[0]}, "i64") + ") -> " +
        type(shape));
    std::string keep = value("arith.cmpf oge, " + u + ", " +
                             constant("0.1", shape) + " : " + type(shape));
    std::string scaled =
        value("arith.mulf " + x + ", " + constant("1.11111116", shape) + " : " +
              type(shape));
    return value("arith.select " + keep + ", " + scaled + ", " +
                 constant("0.0", shape) + " : " + type(shape, "i1") + ", " +
                 type(shape));
  }
  std::string add(const std::string &x, const std::string &y,
                  const Shape &shape) {
    return value("arith.addf " + x + ", " + y + " : " + type(shape));
  }
  /// The mean loss over `rows` labels below `classes`, all of which count.
  std::string crossEntropy(const std::string &logits, const std::string &labels,
                           int64_t rows, int64_t classes) {
    std::string weight = constant(std::to_string(1.0 / double(rows)), {});
    std::string ids = "%loss";
    body += "    %loss, %lse = nn.cross_entropy " + logits + ", " + labels +
            ", " + weight + " : (" + type({rows, classes}) + ", " +
            type({rows}, "i64") + ", tensor<f32>) -> (tensor<f32>, " +
            type({rows}) + ")\n";
    return ids;
  }

  std::string finish(const std::string &loss) {
    return "func.func @forward(" + llvm::join(arguments, ",\n    ") +
           ")\n    -> (tensor<f32> {train.loss, train.name = \"loss\"}) {\n" +
           body + "    return " + loss + " : tensor<f32>\n}\n";
  }

  int64_t stream = 0;

private:
  std::vector<std::string> arguments;
  std::string body;
  int64_t count = 0;
};

} // namespace

Probe tmc::transformerProbe(const TransformerProbe &s) {
  Writer w;
  const int64_t rows = s.batch * s.length, depth = s.width / s.heads;
  const Shape tokens = {s.batch, s.length};
  const Shape stream = {s.batch, s.length, s.width};
  const Shape heads = {s.batch, s.length, s.heads, depth};
  const Shape flat = {rows, s.width};
  std::string ids = w.argument("ids", tokens, "batch", "", "i64");
  std::string labels = w.argument("labels", tokens, "batch", "", "i64");
  w.argument("seed", {2}, "scalar", "", "i64");
  w.argument("samples", {s.batch}, "batch", "", "i64");
  std::string table = w.weight("table", {s.vocabulary, s.width});
  std::string x =
      w.value("nn.embedding " + table + ", " + ids + " : (" +
              Writer::type({s.vocabulary, s.width}) + ", " +
              Writer::type(tokens, "i64") + ") -> " + Writer::type(stream));
  x = w.dropout(x, stream);

  std::string y = w.reshape(w.norm(x, "norm1", stream), stream, flat);
  std::string qkv =
      w.reshape(w.matmul(y, "qkv", rows, s.width, 3 * s.width),
                {rows, 3 * s.width}, {s.batch, s.length, 3 * s.width});
  std::string parts[3];
  for (int i = 0; i < 3; ++i) {
    std::string part =
        w.value("nn.slice " + qkv + " [0, 0, " + std::to_string(i * s.width) +
                "] step [1, 1, 1] : (" +
                Writer::type({s.batch, s.length, 3 * s.width}) + ") -> " +
                Writer::type(stream));
    parts[i] = w.reshape(part, stream, heads);
  }
  std::string attended = w.value(
      "nn.attention " + parts[0] + ", " + parts[1] + ", " + parts[2] +
          " random(%seed, %samples) {causal, dropout = 0.1 : f64, scale = "
          "0.125 : f64, stream = " +
          std::to_string(w.stream++) + " : i64} : (" + Writer::type(heads) +
          ", " + Writer::type(heads) + ", " + Writer::type(heads) +
          ", tensor<2xi64>, " + Writer::type({s.batch}, "i64") + ") -> (" +
          Writer::type(heads) + ", " +
          Writer::type({s.batch, s.heads, s.length}) + ")",
      2);
  y = w.reshape(attended, heads, flat);
  y = w.reshape(w.matmul(y, "project", rows, s.width, s.width), flat, stream);
  x = w.add(w.dropout(y, stream), x, stream);

  y = w.reshape(w.norm(x, "norm2", stream), stream, flat);
  y = w.matmul(y, "widen", rows, s.width, s.hidden);
  y = w.value("nn.gelu " + y + " {tanh} : (" + Writer::type({rows, s.hidden}) +
              ") -> " + Writer::type({rows, s.hidden}));
  y = w.reshape(w.matmul(y, "narrow", rows, s.hidden, s.width), flat, stream);
  x = w.add(w.dropout(y, stream), x, stream);

  y = w.reshape(w.norm(x, "norm3", stream), stream, flat);
  std::string logits = w.matmul(y, "head", rows, s.width, s.vocabulary);
  std::string loss = w.crossEntropy(
      logits, w.reshape(labels, tokens, {rows}, "i64"), rows, s.vocabulary);
  return {"transformer-" + std::to_string(s.batch) + "x" +
              std::to_string(s.length) + "x" + std::to_string(s.width),
          w.finish(loss),
          {{"ids", true, tokens, s.vocabulary},
           {"labels", true, tokens, s.vocabulary}}};
}

Probe tmc::chunkedLossProbe(int64_t rows, int64_t width, int64_t vocabulary,
                            int64_t chunk) {
  Writer w;
  const Shape tokens = {rows}, table = {vocabulary, width};
  std::string ids = w.argument("ids", tokens, "batch", "", "i64");
  std::string labels = w.argument("labels", tokens, "batch", "", "i64");
  std::string x =
      w.value("nn.embedding " + w.weight("table", table) + ", " + ids + " : (" +
              Writer::type(table) + ", " + Writer::type(tokens, "i64") +
              ") -> " + Writer::type({rows, width}));
  std::string loss = w.value(
      "nn.linear_cross_entropy " + x + ", " + w.weight("head", table) + ", " +
          labels + ", " + w.constant(std::to_string(1.0 / double(rows)), {}) +
          " {chunk = " + std::to_string(chunk) + " : i64} : (" +
          Writer::type({rows, width}) + ", " + Writer::type(table) + ", " +
          Writer::type(tokens, "i64") + ", tensor<f32>) -> (tensor<f32>, " +
          Writer::type(tokens) + ")",
      2);
  return {"chunks-" + std::to_string(chunk),
          w.finish(loss),
          {{"ids", true, tokens, vocabulary},
           {"labels", true, tokens, vocabulary}}};
}

Probe tmc::convolutionProbe(int64_t batch, int64_t size, int64_t channels) {
  Writer w;
  const Shape image = {batch, 3, size, size};
  std::string x = w.argument("image", image, "batch");
  std::string labels = w.argument("label", {batch}, "batch", "", "i64");
  int64_t in = 3, side = size;
  std::string states;
  for (int layer = 0; layer < 4; ++layer) {
    // Windows: 3x3, 1x1, 3x3 with stride 2, 1x1.
    const int64_t window = layer % 2 ? 1 : 3, stride = layer == 2 ? 2 : 1;
    const int64_t out = layer % 2 ? 2 * channels : channels;
    const int64_t next = (side + 2 * (window / 2) - window) / stride + 1;
    const std::string n = std::to_string(layer),
                      pad = std::to_string(window / 2);
    const std::string step = std::to_string(stride);
    const Shape from = {batch, in, side, side}, to = {batch, out, next, next};
    const Shape filter = {out, in, window, window};
    std::string f = w.weight("filter" + n, filter);
    x = w.value("nn.conv " + x + ", " + f +
                " {dilations = array<i64: 1, 1>, groups = 1 : i64, padding = "
                "array<i64: " +
                pad + ", " + pad + ", " + pad + ", " + pad +
                ">, strides = array<i64: " + step + ", " + step + ">} : (" +
                Writer::type(from) + ", " + Writer::type(filter) + ") -> " +
                Writer::type(to));
    std::string scale = w.weight("scale" + n, {out}, "ones");
    std::string shift = w.weight("shift" + n, {out}, "zeros");
    std::string mean = w.argument("mean" + n, {out}, "state", "zeros");
    std::string variance = w.argument("variance" + n, {out}, "state", "ones");
    const std::string vector = Writer::type({out});
    x = w.value("nn.batch_norm " + x + ", " + scale + ", " + shift + ", " +
                    mean + ", " + variance +
                    " {epsilon = 1.0e-5 : f64, momentum = 0.1 : f64} : (" +
                    Writer::type(to) + ", " + vector + ", " + vector + ", " +
                    vector + ", " + vector + ") -> (" + Writer::type(to) +
                    ", " + vector + ", " + vector + ", " + vector + ", " +
                    vector + ")",
                5);
    x = w.value("arith.maximumf " + x + ", " + w.constant("0.0", to) + " : " +
                Writer::type(to));
    in = out;
    side = next;
  }
  const Shape last = {batch, in, side, side};
  std::string sum =
      w.value("nn.reduce sum " + x + " over [2, 3] : (" + Writer::type(last) +
              ") -> " + Writer::type({batch, in}));
  std::string logits = w.matmul(sum, "head", batch, in, 16);
  return {"convolution-" + std::to_string(batch) + "x" + std::to_string(size) +
              "x" + std::to_string(channels),
          w.finish(w.crossEntropy(logits, labels, batch, 16)),
          {{"image", false, image, 0}, {"label", true, {batch}, 16}}};
}

std::vector<Probe> tmc::calibrationProbes(const Target &target) {
  // Only transformers have products in 8 bits, and no convolution is in TF32.
  constexpr size_t kTransformers = 3, kProducts = 5;
  const std::vector<Probe> models = {
      transformerProbe({2, 512, 768, 12, 3072, 8192}),
      transformerProbe({4, 64, 512, 8, 2048, 16384}),
      transformerProbe({1, 256, 1024, 16, 4096, 4096}),
      chunkedLossProbe(256, 768, 32768, 32),
      chunkedLossProbe(512, 768, 32768, 256),
      convolutionProbe(8, 56, 64),
      convolutionProbe(16, 28, 32)};
  std::vector<Probe> probes = models;
  if (target.backend != Backend::Cuda)
    return probes;
  auto add = [&](ProductType type, const char *precision, size_t count) {
    for (size_t i = 0; i < count && target.rooflines.contains(type); ++i) {
      Probe probe = models[i];
      probe.name += std::string("-") + precision;
      probe.precision = precision;
      probes.push_back(std::move(probe));
    }
  };
  add(ProductType::TF32, "tf32", kProducts);
  // Cards before Ampere, which has TF32, multiply fp16 alone.
  const bool hasBF16 = target.rooflines.contains(ProductType::TF32);
  add(ProductType::Bits16, hasBF16 ? "bf16" : "fp16", models.size());
  add(ProductType::Bits8, "fp8", kTransformers);
  return probes;
}
