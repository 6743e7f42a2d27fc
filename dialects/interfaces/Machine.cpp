#include "dialects/interfaces/Machine.h"

using namespace mlir;
using namespace tmc;

llvm::raw_ostream &tmc::operator<<(llvm::raw_ostream &os, SpaceKind kind) {
  return os << nameOf(kind);
}

llvm::raw_ostream &tmc::operator<<(llvm::raw_ostream &os, EngineKind kind) {
  return os << nameOf(kind);
}

llvm::raw_ostream &tmc::operator<<(llvm::raw_ostream &os,
                                   const PerSpace<int64_t> &bytes) {
  for (const SpaceInfo &space : kSpaces)
    if (onDevice(space.kind) || bytes[space.kind])
      os << (onDevice(space.kind) ? "" : ", ") << space.name << " = "
         << bytes[space.kind];
  return os;
}

llvm::hash_code tmc::hash_value(const PerSpace<int64_t> &bytes) {
  return llvm::hash_combine_range(bytes.of, bytes.of + kSpaceCount);
}

/// Parses a name of words that a minus joins: "file-read".
static ParseResult parseName(AsmParser &parser, std::string &name) {
  StringRef word;
  if (parser.parseKeyword(&word))
    return failure();
  name = word.str();
  while (succeeded(parser.parseOptionalMinus())) {
    if (parser.parseKeyword(&word))
      return failure();
    name += "-" + word.str();
  }
  return success();
}

/// Parses the name of a row in a table, which `find` looks up.
template <typename Info>
static FailureOr<decltype(Info::kind)>
parseRow(AsmParser &parser, const char *what,
         const Info *(*find)(std::string_view)) {
  SMLoc at = parser.getCurrentLocation();
  std::string name;
  if (parseName(parser, name))
    return failure();
  if (const Info *row = find(name))
    return row->kind;
  return parser.emitError(at) << "there is no " << what << " '" << name << "'",
         failure();
}

FailureOr<SpaceKind> FieldParser<SpaceKind>::parse(AsmParser &parser) {
  return parseRow<SpaceInfo>(parser, "space", findSpace);
}

FailureOr<EngineKind> FieldParser<EngineKind>::parse(AsmParser &parser) {
  return parseRow<EngineInfo>(parser, "engine", findEngine);
}

FailureOr<PerSpace<int64_t>>
FieldParser<PerSpace<int64_t>>::parse(AsmParser &parser) {
  PerSpace<int64_t> bytes;
  auto parseOne = [&]() -> ParseResult {
    FailureOr<SpaceKind> space = FieldParser<SpaceKind>::parse(parser);
    if (failed(space))
      return failure();
    return failure(parser.parseEqual() || parser.parseInteger(bytes[*space]));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::None, parseOne))
    return failure();
  return bytes;
}
