#include "compiler/emit/ProgramTable.h"

#include "compiler/analysis/PlanRecord.h"
#include "compiler/emit/AlgorithmRows.h"
#include "compiler/support/Escape.h"
#include "dialects/interfaces/Interfaces.h"
#include "dialects/train/Train.h"
#include "runtime/kernels/Optimizer.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace tmc;
using train::TrainDialect;

namespace {

/// Standard deviation of freshly drawn weights.
constexpr double kInitStd = 0.02;

/// A tensor in a buffer, under the model's own name: all of the buffer, or some
/// of its rows.
struct Tensor {
  mutable mem::BufferOp buffer; // Ops' accessors aren't const.
  DictionaryAttr attrs;         // Describe the whole buffer.
  train::NamedTensor own;

  StringRef text(StringRef name) const {
    auto attr = attrs.getAs<StringAttr>(name);
    return attr ? attr.getValue() : StringRef();
  }
  bool has(StringRef name) const { return bool(attrs.get(name)); }
  StringRef name() const { return own.name; }
  std::optional<train::Role> role() const {
    auto attr = attrs.getAs<train::RoleAttr>(TrainDialect::kRole);
    return attr ? std::optional(attr.getValue()) : std::nullopt;
  }
  RankedTensorType type() const { return own.type; }
  SpaceKind space() const { return mem::spaceOf(buffer.getMemref().getType()); }
  int64_t rows() const {
    return own.type.getRank() ? std::max<int64_t>(own.type.getDimSize(0), 1)
                              : 1;
  }
  /// Its first element among those of the buffer's tensors. Parts of a cut one
  /// are cut along their rows.
  int64_t firstElement() const {
    return own.firstRow * (own.type.getNumElements() / rows());
  }
  /// Bytes from the start of the space's arena; of a shard, its own.
  int64_t offset() const {
    return buffer.getOffset() +
           (has(TrainDialect::kWhole)
                ? 0
                : own.firstRow * (sizeInBytes(own.type) / rows()));
  }

  const char *runtimeRole() const {
    if (!role())
      return "Output";
    switch (*role()) {
    case train::Role::Param:
      return "Param";
    case train::Role::State:
      return has(TrainDialect::kCopyOf) ? "Copy"
             : has(TrainDialect::kSlot) ? "Moment"
                                        : "State";
    case train::Role::Batch:
      return "Batch";
    case train::Role::Scalar:
      return "Scalar";
    }
    llvm_unreachable("a role");
  }

  /// The source that sets the tensor's value before each step.
  const char *feed() const {
    StringRef what = text(TrainDialect::kFeed);
    if (what == "lr")
      return "LearningRate";
    if (what == "step")
      return "Step";
    if (what == "seed")
      return "Seed";
    if (what == "samples")
      return "Samples";
    if (what == "tensor_place")
      return "TensorPlace";
    return role() == train::Role::Batch || role() == train::Role::Scalar
               ? "Data"
               : "None";
  }

  /// The number that the tensor is initialized with, or the size of the random
  /// numbers, where there is one.
  double start() const {
    if (auto draw = dyn_cast_or_null<train::DrawAttr>(own.init))
      return draw.getSize().getValueAsDouble();
    auto number = dyn_cast_or_null<FloatAttr>(own.init);
    return number ? number.getValueAsDouble() : 0;
  }
  /// True for the state `name` that the updates of all params share.
  bool isCommonState(StringRef name) const {
    return has(TrainDialect::kSlot) && text(TrainDialect::kSlot).empty() &&
           this->name() == name;
  }

  const char *init() const {
    if (auto draw = dyn_cast_or_null<train::DrawAttr>(own.init))
      return draw.getKind() == "uniform" ? "Uniform" : "Normal";
    if (start() != 0)
      return "Constant";
    auto text = dyn_cast_or_null<StringAttr>(own.init);
    StringRef what = text ? text.getValue() : "";
    if (what == "ones")
      return "Ones";
    if (what == "zeros")
      return "Zeros";
    if (has(TrainDialect::kCopyOf))
      return "None";
    if (what == "normal" || role() == train::Role::Param)
      return "Normal";
    return role() == train::Role::State ? "Zeros" : "None";
  }
};

/// The tensors in `buffer`, which has such attributes.
SmallVector<Tensor> tensorsIn(mem::BufferOp buffer, DictionaryAttr attrs) {
  SmallVector<Tensor> tensors;
  for (train::NamedTensor &own :
       train::namedTensors(attrs, buffer.getMemref().getType()))
    tensors.push_back({buffer, attrs, std::move(own)});
  return tensors;
}

/// The mesh, if there are several ranks.
std::string meshField(const Mesh &mesh) {
  if (mesh.ranks() == 1)
    return "";
  return ",\n    .mesh = {.data = " + std::to_string(mesh.data) +
         ", .tensor = " + std::to_string(mesh.tensor) +
         ", .pipeline = " + std::to_string(mesh.pipeline) + "}";
}

class Table {
public:
  Table(llvm::raw_ostream &os, mem::ProgramOp program,
        const Evaluation &evaluation, const MemLiveness &liveness,
        ArrayRef<std::string> kernels, ArrayRef<EmittedObject> objects,
        const EmitOptions &options)
      : os(os), program(program), evaluation(evaluation), liveness(liveness),
        kernels(kernels), objects(objects), options(options) {}

  void print() {
    printTensors();
    printConstants();
    printLaunches();
    printObjects();
    printAlgorithms(os, options.algorithms);
    printChanged();
    printProgram();
  }

private:
  llvm::raw_ostream &os;
  mem::ProgramOp program;
  const Evaluation &evaluation;
  const MemLiveness &liveness;
  ArrayRef<std::string> kernels;
  ArrayRef<EmittedObject> objects;
  const EmitOptions &options;
  std::vector<Tensor> tensors;
  size_t constants = 0;

  void printTensors() {
    for (mem::BufferOp buffer : liveness.buffers)
      if (DictionaryAttr attrs = buffer.getTensorAttr())
        llvm::append_range(tensors, tensorsIn(buffer, attrs));
    for (const Tensor &tensor : tensors) {
      printRanges(tensor);
      printAliases(tensor);
      printStored(tensor);
    }
    os << "const TensorInfo tensors[] = {\n";
    for (const Tensor &tensor : tensors)
      printTensor(tensor);
    os << "};\n\n";
  }

  void printTensor(const Tensor &tensor) {
    RankedTensorType type = tensor.type();
    os << "    {.name = " << cppString(tensor.name())
       << ", .type = " << literal(TypeAttr::get(type.getElementType()))
       << ", .rank = " << type.getRank() << ", .dims = {";
    llvm::interleaveComma(type.getShape(), os);
    os << "},\n     .offset = "
       << llvm::format_hex(uint64_t(tensor.offset()), 1)
       << ", .role = Role::" << tensor.runtimeRole()
       << ", .init = Init::" << tensor.init();
    if (StringRef(tensor.init()) == "Normal" && tensor.start() == 0)
      os << ", .initValue = " << kInitStd;
    if (tensor.start() != 0)
      os << ", .initValue = " << llvm::format("%.9g", tensor.start());
    bool trained = tensor.role() == train::Role::Param &&
                   !tensor.has(TrainDialect::kFrozen);
    os << ",\n     .trainable = " << (trained ? "true" : "false")
       << ", .feed = Feed::" << tensor.feed();
    if (tensor.has(TrainDialect::kAdapter) &&
        tensor.role() == train::Role::Param)
      os << ", .isAdapter = true";
    if (tensor.has(TrainDialect::kCopyOf))
      os << ", .copyOf = " << indexOfOriginal(tensor);
    if (auto limit = tensor.attrs.getAs<IntegerAttr>(TrainDialect::kLimit)) {
      os << ", .limit = " << limit.getInt();
      if (auto ignore = tensor.attrs.getAs<IntegerAttr>(TrainDialect::kIgnore))
        os << ", .allowIgnore = true, .ignore = " << ignore.getInt();
    }
    if (auto ranges = tensor.attrs.getAs<ArrayAttr>(TrainDialect::kRanges))
      os << ",\n     .ranges = ranges" << tensor.buffer.getOffset()
         << ", .rangeCount = " << ranges.size();
    if (SpaceKind space = tensor.space(); !onDevice(space))
      os << ", .space = " << literal(space);
    if (auto aliases = tensor.attrs.getAs<ArrayAttr>(TrainDialect::kAliases))
      os << ",\n     .aliases = aliasesOf" << &tensor - tensors.data()
         << ", .aliasCount = " << aliases.size();
    if (tensor.own.firstRow > 0)
      os << ",\n     .continues = true";
    if (tensor.has(TrainDialect::kStored))
      os << ",\n     .stored = &stored" << &tensor - tensors.data();
    if (tensor.has(TrainDialect::kMaximaOf))
      os << ",\n     .maximaOf = "
         << indexOf(tensor.text(TrainDialect::kMaximaOf));
    if (isOverwritten(tensor.buffer))
      os << ",\n     .isOverwritten = true";
    if (tensor.has(TrainDialect::kWhole))
      os << ",\n     .shard = "
         << tensor.buffer.getMemref().getType().getNumElements()
         << ", .shardFrom = " << tensor.firstElement();
    if (tensor.own.chunk)
      os << ",\n     .chunk = " << tensor.own.chunk
         << ", .pieces = " << options.mesh.tensor;
    os << "},\n";
  }

  /// True if another buffer has some of the bytes of `buffer` within a step.
  bool isOverwritten(mem::BufferOp buffer) const {
    if (buffer.getPersistent())
      return false;
    const MemRefType type = buffer.getMemref().getType();
    const int64_t begin = buffer.getOffset(), end = begin + sizeInBytes(type);
    return llvm::any_of(liveness.buffers, [&](mem::BufferOp other) {
      const MemRefType its = other.getMemref().getType();
      const int64_t first = other.getOffset();
      return other != buffer && mem::spaceOf(its) == mem::spaceOf(type) &&
             first < end && begin < first + sizeInBytes(its);
    });
  }

  int64_t indexOf(StringRef name) const {
    return llvm::find_if(
               tensors,
               [&](const Tensor &tensor) { return tensor.name() == name; }) -
           tensors.begin();
  }

  /// The parameter that a tensor of codes stands for.
  void printStored(const Tensor &tensor) {
    auto stored = tensor.attrs.getAs<train::StoredAttr>(TrainDialect::kStored);
    if (!stored)
      return;
    os << "const StoredInfo stored" << &tensor - tensors.data()
       << " = {.rank = " << stored.getType().getRank() << ", .dims = {";
    llvm::interleaveComma(stored.getType().getShape(), os);
    os << "}, .byRows = " << (tensor.type().getRank() == 2 ? "true" : "false")
       << ", .absmax = " << indexOf(stored.getAbsmax());
    if (stored.getNested())
      os << ", .nested = " << indexOf(stored.getNested());
    os << "};\n";
  }

  void printAliases(const Tensor &tensor) {
    auto aliases = tensor.attrs.getAs<ArrayAttr>(TrainDialect::kAliases);
    if (!aliases)
      return;
    os << "const char *const aliasesOf" << &tensor - tensors.data() << "[] = {";
    llvm::interleaveComma(
        aliases.getAsRange<StringAttr>(), os,
        [&](StringAttr name) { os << cppString(name.getValue()); });
    os << "};\n";
  }

  /// The index of the parameter, or of the part of one, that `copy` is a copy
  /// of.
  int64_t indexOfOriginal(const Tensor &copy) const {
    StringRef param = copy.text(TrainDialect::kCopyOf);
    return llvm::find_if(tensors,
                         [&](const Tensor &tensor) {
                           return tensor.role() == train::Role::Param &&
                                  tensor.text(TrainDialect::kName) == param &&
                                  tensor.own.firstRow == copy.own.firstRow;
                         }) -
           tensors.begin();
  }

  /// The boxes of a tensor's elements that have limits of their own.
  void printRanges(const Tensor &tensor) {
    auto ranges = tensor.attrs.getAs<ArrayAttr>(TrainDialect::kRanges);
    if (!ranges)
      return;
    os << "const IndexRange ranges" << tensor.buffer.getOffset() << "[] = {\n";
    for (auto range : ranges.getAsRange<train::RangeAttr>()) {
      os << "    {";
      for (ArrayRef<int64_t> list :
           {range.getOffsets(), range.getSizes(), range.getSteps()}) {
        os << "{";
        llvm::interleaveComma(list, os);
        os << "}, ";
      }
      os << range.getLimit();
      if (std::optional<int64_t> ignore = range.getIgnore())
        os << ", true, " << *ignore;
      os << "},\n";
    }
    os << "};\n";
  }

  /// The bytes of `value`'s elements, in rows of numbers.
  void printBytes(ElementsAttr value, int64_t bytes) {
    auto dense = cast<DenseElementsAttr>(value);
    ArrayRef<char> raw = dense.getRawData();
    bool isBool = dense.getElementType().isInteger(1);
    int64_t element = bytes / std::max<int64_t>(dense.getNumElements(), 1);
    for (int64_t i = 0; i < bytes; ++i) {
      uint8_t byte;
      if (isBool)
        byte = dense.isSplat() ? dense.getSplatValue<bool>()
                               : dense.getValues<bool>()[i];
      else
        byte = raw[dense.isSplat() ? i % element : i];
      os << (i % 20 ? "" : "\n    ") << unsigned(byte) << ",";
    }
  }

  void printConstants() {
    std::vector<mem::BufferOp> list;
    for (mem::BufferOp buffer : liveness.buffers)
      if (buffer.getConstant())
        list.push_back(buffer);
    constants = list.size();
    for (auto [i, buffer] : llvm::enumerate(list)) {
      os << "alignas(8) const unsigned char constant_" << i << "[] = {";
      printBytes(*buffer.getConstant(),
                 sizeInBytes(buffer.getMemref().getType()));
      os << "\n};\n";
    }
    if (list.empty())
      return;
    os << "const ConstantInfo constants[] = {\n";
    for (size_t i = 0; i < list.size(); ++i) {
      mem::BufferOp buffer = list[i];
      os << "    {" << llvm::format_hex(uint64_t(buffer.getOffset()), 1) << ", "
         << sizeInBytes(buffer.getMemref().getType()) << ", constant_" << i
         << "},\n";
    }
    os << "};\n\n";
  }

  static void printRegion(llvm::raw_ostream &os, mem::BufferOp buffer) {
    MemRefType type = buffer.getMemref().getType();
    SpaceKind space = mem::spaceOf(type);
    os << "    {" << llvm::format_hex(uint64_t(buffer.getOffset()), 1) << ", "
       << sizeInBytes(type) << ", "
       << literal(TypeAttr::get(type.getElementType()));
    if (!onDevice(space))
      os << ", " << literal(space);
    os << "},\n";
  }

  void printLaunches() {
    std::vector<std::vector<mem::BufferOp>> deaths(liveness.moments.size());
    for (auto [each, span] : llvm::zip(liveness.buffers, liveness.spans))
      if (mem::BufferOp buffer = each; !buffer.getPersistent() &&
                                       span.begin < span.end &&
                                       !span.crossesTrips && !isOutput(buffer))
        deaths[span.end - 1].push_back(buffer);
    struct Row {
      std::string name, location;
      size_t firstWrite, writes, firstDeath, deaths;
      std::string family;
      int64_t flops, bytes, elements;
      EngineKind engine = EngineKind::Compute;
      int64_t startedBy = -1, moved = 0, together = 1;
    };
    llvm::DenseMap<int64_t, Operation *> workOf = workOfEvents(program);
    llvm::DenseMap<Operation *, int64_t> momentOf;
    std::vector<Row> rows;
    size_t regions = 0;
    bool isInside = false; // The launch before is joined with this one.
    std::string regionRows;
    llvm::raw_string_ostream regionStream(regionRows);
    for (auto [moment, op] : llvm::enumerate(liveness.moments)) {
      momentOf[op] = moment;
      Row row{"zeros", "", regions, 0, 0, 0, "Fill", 0, 0, 0};
      SmallVector<Value> writes;
      if (auto launch = dyn_cast<mem::LaunchOp>(op)) {
        row.name = launch.getOp().str();
        if (launch.getInstance() > 0)
          row.name += "@" + std::to_string(launch.getInstance());
        llvm::append_range(writes, launch.getOutputs());
        row.family = launch.getGenerated() ? "Fused" : launch.getCallee().str();
        row.flops = launch.getFlops();
        row.bytes = launch.getBytes();
        for (Value value : launch.getInputs())
          row.elements = std::max(row.elements, elementsOf(value));
        row.engine = mem::engineOf(launch);
        if (!isInside)
          row.together = joinedFrom(launch).size();
        isInside = launch.getJoinsNext();
      } else if (auto copy = dyn_cast<mem::CopyOp>(op)) {
        row.name = copy.getOp().str();
        if (copy.getInstance() > 0)
          row.name += "@" + std::to_string(copy.getInstance());
        row.family = "Move";
        row.engine = copy.getEngine();
        row.moved = row.bytes = sizeInBytes(copy.getSource().getType());
        writes.push_back(copy.getTarget());
      } else if (auto done = dyn_cast<mem::DoneOp>(op)) {
        row.startedBy = momentOf.lookup(workOf.lookup(done.getEvent()));
        row.name = rows[row.startedBy].name;
        row.family = "Done";
        row.engine = rows[row.startedBy].engine;
      } else if (auto fill = dyn_cast<mem::FillOp>(op)) {
        writes.push_back(fill.getTarget());
        row.bytes = sizeInBytes(cast<MemRefType>(fill.getTarget().getType()));
      }
      for (Value value : writes)
        row.elements = std::max(row.elements, elementsOf(value));
      row.location = sourceLine(op->getLoc());
      for (Value value : writes)
        printRegion(regionStream, bufferOf(value));
      row.writes = writes.size();
      row.firstDeath = row.firstWrite + row.writes;
      for (mem::BufferOp buffer : deaths[moment])
        printRegion(regionStream, buffer);
      row.deaths = deaths[moment].size();
      regions = row.firstDeath + row.deaths;
      rows.push_back(std::move(row));
    }
    // Regions are defined after the launches: nvcc's front end copies a table
    // whose values it knows for each pointer into the table, megabytes per
    // launch.
    os << "extern const Region regions[];\nconst LaunchInfo launches[] = {\n";
    for (auto [i, row] : llvm::enumerate(rows)) {
      os << "    {" << cppString(row.name) << ", " << cppString(row.location)
         << ", regions + " << row.firstWrite << ", " << row.writes
         << ", regions + " << row.firstDeath << ", " << row.deaths << ", "
         << cppString(row.family) << ", " << cppString(kernels[i]) << ", "
         << row.flops << ", " << row.bytes << ", " << row.elements;
      bool isTimed = i < options.entrySeconds.size();
      const bool isJoined = row.together > 1;
      if (isTimed || isJoined || row.engine != EngineKind::Compute)
        os << ", " << literal(row.engine) << ", " << row.startedBy << ", "
           << row.moved;
      if (isTimed || isJoined)
        os << ", "
           << llvm::format("%.6g", isTimed ? options.entrySeconds[i] : -1.0);
      if (isJoined)
        os << ", " << row.together;
      os << "},\n";
    }
    os << "};\nconst Region regions[] = {\n" << regionRows << "};\n\n";
  }

  void printObjects() {
    if (objects.empty())
      return;
    os << "const ObjectInfo objects[] = {\n";
    for (const EmittedObject &its : objects)
      os << "    {" << cppString(its.name) << ", " << cppString(its.object)
         << "},\n";
    os << "};\n\n";
  }

  static int64_t elementsOf(Value memref) {
    return cast<MemRefType>(memref.getType()).getNumElements();
  }

  static bool isOutput(mem::BufferOp buffer) {
    DictionaryAttr attrs = buffer.getTensorAttr();
    return attrs && attrs.get("train.output");
  }

  /// "train.py:212" where the location has a line of the user's file. The path
  /// is cut to its last component: outputs hold no path of a machine.
  static std::string sourceLine(Location loc) {
    std::string found;
    loc->walk([&](Location part) {
      if (auto line = dyn_cast<FileLineColLoc>(part)) {
        found = (line.getFilename().getValue().rsplit('/').second.empty()
                     ? line.getFilename().getValue()
                     : line.getFilename().getValue().rsplit('/').second)
                    .str() +
                ":" + std::to_string(line.getLine());
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return found;
  }

  /// The number of events that order the engines, and the file's directory; ""
  /// if compute works alone.
  std::string besideDevice() {
    bool isThere = false;
    for (const SpaceInfo &space : kSpaces)
      isThere |= !onDevice(space.kind) && program.arenaBytesIn(space.kind) > 0;
    int64_t events = 0;
    program.walk([&](mem::RecordOp record) {
      events = std::max<int64_t>(events, record.getEvent() + 1);
    });
    if (!isThere && events == 0)
      return "";
    return "    .fileDirectory = " + cppString(options.fileDirectory) +
           ", .eventCount = " + std::to_string(events) + ",\n";
  }

  std::string adapterFields() const {
    const AdapterFiles &files = options.adapter;
    if (files.config.empty())
      return "";
    std::string text =
        "    .adapterConfig = " + cppString(files.config) + ",\n";
    if (!files.prefixInModel.empty() || !files.prefixInFile.empty())
      text += "    .prefixInModel = " + cppString(files.prefixInModel) +
              ", .prefixInFile = " + cppString(files.prefixInFile) + ",\n";
    return text;
  }

  /// True if updates take a clipping factor.
  bool clips() {
    bool found = false;
    program.walk([&](mem::LaunchOp launch) {
      if (launch.getCallee() != GradNorm::kSymbol)
        return;
      for (Attribute param : launch.getParams()) {
        auto pair = cast<ArrayAttr>(param);
        if (cast<StringAttr>(pair[0]) ==
            TMC_FIELD_NAME(GradNorm::Params, maxNorm))
          found |= cast<FloatAttr>(pair[1]).getValueAsDouble() > 0;
      }
    });
    return found;
  }

  /// The tensors that an evaluation changes.
  SmallVector<int64_t> changedTensors() const {
    SmallVector<int64_t> changed;
    for (auto [i, tensor] : llvm::enumerate(tensors))
      if (llvm::is_contained(evaluation.changed, tensor.buffer))
        changed.push_back(int64_t(i));
    return changed;
  }

  void printChanged() {
    const SmallVector<int64_t> changed = changedTensors();
    if (changed.empty() || !evaluation.program)
      return;
    os << "const int64_t changedByEvaluation[] = {";
    llvm::interleaveComma(changed, os);
    os << "};\n\n";
  }

  std::string evaluationFields() const {
    if (!evaluation.program)
      return "    .noEvaluation = " + cppString(evaluation.why) + ",\n";
    const size_t changed = changedTensors().size();
    return "    .evaluate = evaluate,\n" +
           (changed ? "    .changedByEvaluation = changedByEvaluation, "
                      ".changedByEvaluationCount = " +
                          std::to_string(changed) + ",\n"
                    : std::string());
  }

  void printProgram() {
    PlanRecord plan = PlanRecord::of(program).value_or(PlanRecord());
    int64_t loss = -1, norm = -1, scale = -1, count = -1, saturations = -1,
            samples = 0, tokens = 0;
    for (auto [i, tensor] : llvm::enumerate(tensors)) {
      if (tensor.has(TrainDialect::kLoss))
        loss = i;
      if (!tensor.role() && tensor.name() == "grad_norm")
        norm = i;
      if (tensor.isCommonState("loss_scale"))
        scale = i;
      if (tensor.isCommonState("optimizer.step"))
        count = i;
      if (tensor.isCommonState("saturations"))
        saturations = i;
      if (tensor.role() != train::Role::Batch ||
          StringRef(tensor.feed()) != "Data" || tensor.type().getRank() < 1)
        continue;
      samples = std::max(samples, tensor.type().getDimSize(0));
      // Integers [batch, sequence] are tokens.
      if (tensor.type().getRank() == 2 &&
          tensor.type().getElementType().isInteger())
        tokens = std::max(tokens, tensor.type().getNumElements());
    }
    os << "const StepProgram program = {\n"
       << "    .version = kProgramVersion,\n    .backend = Backend::"
       << (options.backend == Backend::Cpu ? "Cpu" : "Cuda") << ",\n"
       << "    .model = " << cppString(options.model) << ",\n"
       << "    .fingerprint = " << cppString(fingerprintOf(program)) << ",\n"
       << "    .arenaBytes = "
       << literal(program.getArenaBytes().value_or(PerSpace<int64_t>()))
       << ",\n"
       << besideDevice()
       << "    .tensors = tensors,\n    .tensorCount = " << tensors.size()
       << ",\n    .constants = " << (constants ? "constants" : "nullptr")
       << ",\n    .constantCount = " << constants
       << ",\n    .launches = launches,\n    .launchCount = "
       << liveness.moments.size()
       << ",\n    .objects = " << (objects.empty() ? "nullptr" : "objects")
       << ",\n    .objectCount = " << objects.size() << ",\n"
       << algorithmField(options.algorithms) << "    .lossTensor = " << loss
       << ",\n    .gradNormTensor = " << norm
       << ",\n    .lossScaleTensor = " << scale
       << ",\n    .updateCountTensor = " << count
       << ",\n    .saturationsTensor = " << saturations
       << (scale < 0 && clips() ? ",\n    .skipsNonFinite = true" : "")
       << ",\n    .samplesPerStep = " << samples
       << ",\n    .tokensPerStep = " << tokens << meshField(options.mesh)
       << ",\n    .plan = {.budgetBytes = " << options.budgetBytes
       << ", .reservedBytes = " << options.reservedBytes
       << ", .livePeakBytes = " << literal(plan.livePeakBytes)
       << ",\n             .unconstrainedBytes = " << plan.unconstrainedBytes
       << ",\n             .predictedSeconds = "
       << llvm::format("%.6g", options.predictedSeconds)
       << ", .unconstrainedSeconds = "
       << llvm::format("%.6g", options.unconstrainedSeconds)
       << ",\n             .recomputedOps = " << plan.recomputedOps << "},\n"
       << "    .origin = {.version = " << cppString(options.version)
       << ", .target = " << cppString(options.target)
       << ",\n               .model = " << cppString(options.modelFingerprint)
       << ", .plan = " << cppString(options.planFingerprint) << "},\n"
       << adapterFields()
       << "    .createKernels = [] { return static_cast<void *>(new "
          "Kernels); },\n"
       << "    .destroyKernels = [](void *k) { delete static_cast<Kernels "
          "*>(k); },\n"
       << "    .visitKernels = visitKernels,\n    .run = run,\n"
       << evaluationFields() << "};\n\n";
  }
};

} // namespace

std::string tmc::literal(EngineKind engine) {
  return std::string("engine(\"") + nameOf(engine) + "\")";
}

std::string tmc::literal(SpaceKind space) {
  return std::string("space(\"") + nameOf(space) + "\")";
}

std::string tmc::literal(const PerSpace<int64_t> &numbers) {
  return "{{" +
         llvm::join(llvm::map_range(
                        numbers.of,
                        [](int64_t number) { return std::to_string(number); }),
                    ", ") +
         "}}";
}

void tmc::printProgramTable(llvm::raw_ostream &os, mem::ProgramOp program,
                            const Evaluation &evaluation,
                            const MemLiveness &liveness,
                            ArrayRef<std::string> kernels,
                            ArrayRef<EmittedObject> objects,
                            const EmitOptions &options) {
  Table(os, program, evaluation, liveness, kernels, objects, options).print();
}

/// Calls `visit` with the name and type of each tensor, and whether a
/// checkpoint holds it.
static void
forSaved(mem::ProgramOp program,
         llvm::function_ref<void(StringRef, RankedTensorType, bool)> visit) {
  for (auto buffer : program.getBlock().getOps<mem::BufferOp>()) {
    DictionaryAttr attrs = buffer.getTensorAttr();
    if (!attrs)
      continue;
    for (const Tensor &tensor : tensorsIn(buffer, attrs))
      visit(tensor.name(), tensor.type(),
            tensor.role() == train::Role::Param ||
                (tensor.role() == train::Role::State &&
                 !tensor.has(TrainDialect::kCopyOf)));
  }
}

std::string tmc::fingerprintOf(mem::ProgramOp program) {
  // The saved tensors, in an order that doesn't depend on their offsets.
  std::vector<std::string> lines;
  forSaved(program, [&](StringRef name, RankedTensorType type, bool saved) {
    if (!saved)
      return;
    std::string line;
    // The type leaves out the memory space, so that any plan can resume from
    // another's checkpoint.
    llvm::raw_string_ostream(line)
        << name << ":"
        << MemRefType::get(type.getShape(), type.getElementType()) << "\n";
    lines.push_back(line);
  });
  llvm::sort(lines);
  llvm::SHA256 hash;
  for (const std::string &line : lines)
    hash.update(line);
  return llvm::toHex(hash.final(), /*LowerCase=*/true).substr(0, 16);
}

std::string tmc::emitHeader(mem::ProgramOp program, const EmitOptions &options,
                            const StepInterface &interface) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "/* step.h - the compiled training step of " << inComment(options.model)
     << ".\n *\n * Link "
     << (interface.name.empty() ? "libstep.so and use the functions of tmc.h."
                                : inComment("lib" + interface.name + ".so") +
                                      " and use its functions.")
     << " Tensors by name:\n *\n";
  forSaved(program, [&](StringRef name, RankedTensorType type, bool saved) {
    os << " *   " << inComment(name) << ": ";
    llvm::interleave(type.getShape(), os, "x");
    os << (type.getRank() ? "x" : "") << type.getElementType() << ".\n";
  });
  os << " */\n" << interfaceHeader(interface, program.deviceArenaBytes());
  return text;
}
