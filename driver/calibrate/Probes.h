// Probes.h - the training steps that a calibration measures.
//
// Forward graphs as text, of the shapes that matter: a transformer block with a
// wide head at several widths and lengths, a head whose loss is taken in
// chunks, and a convolutional net. On a card they come in each type of
// products. Each is compiled and run like any model, so that the measured
// kernels are the ones that models run.

#ifndef TMC_DRIVER_CALIBRATE_PROBES_H
#define TMC_DRIVER_CALIBRATE_PROBES_H

#include "compiler/target/Target.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tmc {

/// An input that the trainer reads from a file.
struct ProbeInput {
  std::string name;
  bool isTokens = true; // Else f32.
  std::vector<int64_t> shape;
  int64_t limit = 0; // Tokens are below this.
};

struct Probe {
  std::string name;
  std::string forward; // IR, as readForward takes it.
  std::vector<ProbeInput> inputs;
  std::string precision = "f32"; // As for --precision.
};

struct TransformerProbe {
  int64_t batch, length, width, heads, hidden, vocabulary;
};

Probe transformerProbe(const TransformerProbe &sizes);
/// Only a head over `rows` tokens, `chunk` at a time.
Probe chunkedLossProbe(int64_t rows, int64_t width, int64_t vocabulary,
                       int64_t chunk);
Probe convolutionProbe(int64_t batch, int64_t size, int64_t channels);

/// The probes of `tmc calibrate`: in f32, and on a card in each other type that
/// the target has rates for. A card multiplies bf16 and fp16 at the same rate,
/// so one of them stands for both.
std::vector<Probe> calibrationProbes(const Target &target);

} // namespace tmc

#endif // TMC_DRIVER_CALIBRATE_PROBES_H
