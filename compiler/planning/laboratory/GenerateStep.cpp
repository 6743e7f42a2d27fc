#include "compiler/planning/laboratory/GenerateStep.h"

#include "compiler/planning/model/Random.h"

using namespace tmc::planning;

namespace {

constexpr SpaceId kHost = 1, kFile = 2;

/// Time in picoseconds to move `bytes`.
int64_t timeOf(int64_t bytes, int64_t bandwidth) {
  return int64_t(__int128(bytes) * 1'000'000'000'000 / bandwidth);
}

class StepBuilder {
public:
  explicit StepBuilder(const StepOptions &options)
      : options(options), random(options.seed) {}

  Problem run() {
    addHouse();
    for (int64_t l = 0; l < options.layers; ++l)
      addState(l);
    Value input = value("batch", options.streamBytes, ValueClass::Batch);
    input.kind = ValueKind::Persistent;
    ValueId stream = problem.addValue(input);
    for (Layer &layer : layers)
      stream = addForward(layer, stream);
    addLoss(stream);
    for (size_t l = layers.size(); l-- > 0;)
      addBackward(layers[l], l == 0);
    for (Layer &layer : layers)
      addUpdate(layer);
    return std::move(problem);
  }

private:
  /// A content and its forms.
  struct Forms {
    ValueId device = kNone, host = kNone, file = kNone;
  };
  struct Layer {
    std::string name;
    Forms state[3], next[3]; // Parameter, moments; and their new versions.
    Forms gradient, carried;
    ValueId saved = kNone, streamIn = kNone;
  };

  int64_t vary(int64_t x) { return x - x / 20 + x / 1000 * random.below(100); }
  Value value(const std::string &name, int64_t bytes, ValueClass valueClass) {
    Value v;
    v.name = name;
    v.bytes = bytes;
    v.valueClass = valueClass;
    return v;
  }

  void addHouse() {
    problem.addSpace(SpaceKind::Host);
    for (auto [from, to] : {std::pair(0, kHost), {kHost, 0}, {kHost, kHost}})
      problem.engineBetween(from, to);
    if (options.fileBandwidth) {
      problem.addSpace(SpaceKind::File);
      for (auto [from, to] : {std::pair(kFile, kHost), {kHost, kFile}})
        problem.engineBetween(from, to);
    }
    bool loops = options.microBatches > 1;
    body = loops ? (problem.addSegment("prologue"),
                    problem.addSegment("body", options.microBatches))
                 : problem.addSegment("step");
    end = loops ? problem.addSegment("epilogue") : body;
  }

  /// `main` and its other forms; each form updates the same form of `old`.
  Forms addForms(Value main, const Forms *old = nullptr) {
    Forms forms;
    std::string name = main.name;
    if (old)
      main.updates = old->device;
    forms.device = problem.addValue(main);
    main.formOf = forms.device;
    main.name = name + "@host";
    main.space = kHost;
    if (old)
      main.updates = old->host;
    forms.host = problem.addValue(main);
    if (options.fileBandwidth) {
      main.name = name + "@file";
      main.space = kFile;
      if (old)
        main.updates = old->file;
      forms.file = problem.addValue(main);
    }
    return forms;
  }

  void addCopy(const char *verb, ValueId from, ValueId to, int64_t bandwidth,
               SegmentId segment = kNone) {
    Recipe r;
    r.name =
        std::string(verb) + " " + problem.values[problem.contentOf(from)].name;
    r.reads = {from};
    r.writes = {to};
    r.engine = problem.engineBetween(problem.values[from].space,
                                     problem.values[to].space);
    r.cost = timeOf(problem.values[from].bytes, bandwidth);
    r.recomputable = true;
    r.segment = segment;
    problem.addRecipe(r);
  }
  void addMoves(const Forms &f, SegmentId segment = kNone) {
    addCopy("stash", f.device, f.host, options.linkBandwidth, segment);
    addCopy("fetch", f.host, f.device, options.linkBandwidth, segment);
    if (f.file == kNone)
      return;
    addCopy("write", f.host, f.file, options.fileBandwidth, segment);
    addCopy("read", f.file, f.host, options.fileBandwidth, segment);
  }

  void addState(int64_t l) {
    Layer &layer = layers.emplace_back();
    layer.name = std::to_string(l);
    int64_t bytes = vary(options.parameterBytes);
    const char *names[] = {"w", "m", "v"};
    for (int i = 0; i < 3; ++i) {
      Value v = value(names[i] + layer.name, bytes,
                      i ? ValueClass::Optimizer : ValueClass::Parameter);
      v.kind = ValueKind::Persistent;
      layer.state[i] = addForms(v);
      v.name += "'";
      layer.next[i] = addForms(v, &layer.state[i]);
      addMoves(layer.state[i]);
      addMoves(layer.next[i]);
    }
    layer.gradient =
        addForms(value("g" + layer.name, bytes, ValueClass::Gradient));
    addMoves(layer.gradient);
    if (options.microBatches == 1)
      return;
    Value c = value("c" + layer.name, bytes, ValueClass::Gradient);
    c.kind = ValueKind::Carried;
    c.carriedFrom = layer.gradient.device;
    layer.carried = addForms(c);
    problem.values[layer.carried.host].carriedFrom = layer.gradient.host;
    if (layer.carried.file != kNone)
      problem.values[layer.carried.file].carriedFrom = layer.gradient.file;
    addMoves(layer.carried, body);
  }

  ValueId addForward(Layer &layer, ValueId stream) {
    int64_t time = vary(options.layerTime);
    layer.streamIn = stream;
    Forms saved = addForms(value("s" + layer.name, vary(options.savedBytes),
                                 ValueClass::Activation));
    layer.saved = saved.device;
    addMoves(saved);
    ValueId out = problem.addValue(
        value("a" + layer.name, options.streamBytes, ValueClass::Activation));
    Recipe r;
    r.name = "forward " + layer.name;
    r.reads = {stream, layer.state[0].device};
    r.writes = {layer.saved, out};
    r.cost = time;
    r.recomputable = true;
    problem.addInstruction(body, r);
    return out;
  }

  void addLoss(ValueId stream) {
    descent =
        problem.addValue(value("d", options.streamBytes, ValueClass::Gradient));
    Recipe r;
    r.name = "loss";
    r.reads = {stream};
    r.writes = {descent};
    r.cost = options.layerTime / 10;
    problem.addInstruction(body, r);
  }

  void addBackward(Layer &layer, bool last) {
    Recipe r;
    r.name = "backward " + layer.name;
    r.reads = {descent, layer.saved, layer.state[0].device};
    r.writes = {layer.gradient.device};
    r.cost = 2 * vary(options.layerTime);
    if (layer.carried.device != kNone) {
      r.reads.push_back(layer.carried.device);
      r.overwrites = {{layer.carried.device, layer.gradient.device, false}};
    }
    if (!last) {
      descent = problem.addValue(
          value("d" + layer.name, options.streamBytes, ValueClass::Gradient));
      r.overwrites.push_back({r.reads[0], descent, false});
      r.writes.push_back(descent);
    }
    problem.addInstruction(body, r);
  }

  void addUpdate(Layer &layer) {
    auto recipe = [&](ValueId Forms::*form, const char *where,
                      int64_t bandwidth) {
      Recipe r;
      r.name = "update " + layer.name + where;
      r.reads = {layer.gradient.*form};
      for (int i = 0; i < 3; ++i) {
        r.reads.push_back(layer.state[i].*form);
        r.writes.push_back(layer.next[i].*form);
        r.overwrites.push_back(
            {layer.state[i].*form, layer.next[i].*form, true});
      }
      // Four are read, three are written.
      r.cost =
          timeOf(7 * problem.values[layer.gradient.device].bytes, bandwidth);
      return r;
    };
    InstructionId update = problem.addInstruction(
        end, recipe(&Forms::device, "", kDeviceBandwidth));
    Recipe host = recipe(&Forms::host, " on the host", options.hostBandwidth);
    host.engine = problem.engineBetween(kHost, kHost);
    host.workspaceSpace = kHost;
    problem.addVariant(update, host);
  }

  /// Bandwidth of device memory, which bounds an update there.
  static constexpr int64_t kDeviceBandwidth = 1'000'000'000'000;

  const StepOptions &options;
  Random random;
  Problem problem;
  std::vector<Layer> layers;
  SegmentId body = 0, end = 0;
  ValueId descent = kNone; // The gradient of the stream.
};

} // namespace

Problem tmc::planning::generateStep(const StepOptions &options) {
  return StepBuilder(options).run();
}
