//===- JsonLines.cpp - samples in JSON, one a line ------------------------===//

#include "runtime/step/JsonLines.h"

#include "runtime/step/JsonReader.h"

#include <algorithm>
#include <cstring>

namespace tmc {

namespace {

constexpr int64_t kMostLineBytes = 16 << 20;
constexpr int64_t kPieceBytes = 1 << 20;
/// Keys that a message lists.
constexpr size_t kMostShownKeys = 8;

bool isInteger(DType type) {
  return type == DType::I64 || type == DType::I32 || type == DType::I1;
}

std::string quoted(const std::string &name) { return "'" + name + "'"; }

/// Parses the value of one column.
class RowReader {
public:
  RowReader(JsonReader &at, const JsonColumn &column)
      : at_(at), column_(column), input_(*column.input) {}

  bool read() {
    fill();
    return values(1, 0);
  }

private:
  /// Writes the padding, or zeros, everywhere: rows overwrite it.
  void fill() {
    const int64_t count = column_.perSample(), size = sizeOf(input_.type);
    std::memset(column_.to, 0, size_t(count * size));
    const int64_t padding = column_.padding.value_or(0);
    if (padding && isInteger(input_.type))
      for (int64_t i = 0; i < count; ++i) // Little-endian.
        std::memcpy(column_.to + i * size, &padding, size_t(size));
  }

  /// The numbers from element `first` on, from dimension `dim` inwards.
  bool values(int dim, int64_t first) {
    if (dim == input_.rank)
      return number(first);
    const int64_t extent = input_.dims[dim];
    int64_t inner = 1;
    for (int d = dim + 1; d < input_.rank; ++d)
      inner *= input_.dims[d];
    const int64_t start = at_.position();
    if (!at_.expect('['))
      return false;
    int64_t count = 0;
    if (!at_.accept(']')) {
      do {
        if (count == extent)
          return tooMany(start, extent);
        if (!values(dim + 1, first + count * inner))
          return false;
        ++count;
      } while (at_.accept(','));
      if (!at_.expect(']'))
        return false;
    }
    const bool isPadded = column_.padding && input_.rank == 2;
    return count == extent || isPadded || tooFew(start, count, extent);
  }

  bool tooMany(int64_t start, int64_t extent) {
    int64_t count = extent;
    do {
      if (!at_.skip())
        return false;
      ++count;
    } while (at_.accept(','));
    return at_.failAt(
        start, quoted(input_.name) + " has " + std::to_string(count) +
                   " entries, and a sample takes " + std::to_string(extent) +
                   ": cut or split the row, or compile the model "
                   "for longer ones");
  }

  bool tooFew(int64_t start, int64_t count, int64_t extent) {
    return at_.failAt(
        start, quoted(input_.name) + " has " + std::to_string(count) +
                   " entries, and a sample takes " + std::to_string(extent) +
                   (input_.rank == 2
                        ? ": rows are filled up only where the model leaves "
                          "labels out or takes a mask"
                        : ""));
  }

  bool number(int64_t index) {
    const int64_t start = at_.position();
    char *to = column_.to + index * sizeOf(input_.type);
    ArrayView array;
    char from[8];
    if (isInteger(input_.type)) {
      int64_t value;
      if (!at_.whole(value))
        return false;
      if (!isAllowed(value))
        return at_.failAt(start, quoted(input_.name) + " has " +
                                     std::to_string(value) + ", outside [0, " +
                                     std::to_string(input_.limit) + ")");
      array.type = DType::I64;
      std::memcpy(from, &value, sizeof value);
    } else {
      double value;
      if (!at_.number(value))
        return false;
      array.type = DType::F64;
      std::memcpy(from, &value, sizeof value);
    }
    const Status s =
        convertElements(array, from, index, 1, column_.spec, input_.type, to);
    return s || at_.failAt(start, quoted(input_.name) + ": " + s.message());
  }

  /// Boxes of elements with a range of their own are checked when the step is
  /// fed.
  bool isAllowed(int64_t value) const {
    return input_.limit <= 0 || (value >= 0 && value < input_.limit) ||
           (input_.allowIgnore && value == input_.ignore);
  }

  JsonReader &at_;
  const JsonColumn &column_;
  const TensorInfo &input_;
};

/// Parses a whole line.
bool readLine(JsonReader &at, const std::vector<JsonColumn> &columns) {
  std::vector<bool> seen(columns.size());
  std::string keys;
  size_t keyCount = 0;
  auto each = [&](const std::string &key) {
    if (++keyCount <= kMostShownKeys)
      keys += (keys.empty() ? "" : ", ") + quoted(key);
    for (size_t i = 0; i < columns.size(); ++i) {
      if (key != columns[i].input->name)
        continue;
      if (seen[i])
        return at.failAt(at.position(),
                         quoted(key) + " stands twice in the line");
      seen[i] = true;
      return RowReader(at, columns[i]).read();
    }
    return at.skip();
  };
  if (!at.object(each) || !at.finish())
    return false;
  for (size_t i = 0; i < columns.size(); ++i)
    if (!seen[i])
      return at.failAt(
          0, "the line has no " + quoted(columns[i].input->name) +
                 (keys.empty() ? "" : "; its keys are " + keys) +
                 (keyCount > kMostShownKeys
                      ? " and " + std::to_string(keyCount - kMostShownKeys) +
                            " more"
                      : ""));
  return true;
}

bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

} // namespace

int64_t JsonColumn::perSample() const {
  int64_t count = 1;
  for (int d = 1; d < input->rank; ++d)
    count *= input->dims[d];
  return count;
}

Status JsonLines::open(const std::vector<std::string> &paths,
                       JsonLines &lines) {
  lines = JsonLines();
  for (const std::string &path : paths) {
    File file{path, {}, lines.samples()};
    if (Status s = MappedFile::open(path, file.file); !s)
      return s;
    if (Status s = lines.findLines(file); !s)
      return s;
    lines.files_.push_back(std::move(file));
  }
  if (!lines.samples())
    return {Code::BadInput,
            quoted(paths.front()) +
                (paths.size() > 1 ? " and the files after it have no line"
                                  : " has no line")};
  return Status::ok();
}

Status JsonLines::findLines(const File &file) {
  std::vector<char> piece(static_cast<size_t>(kPieceBytes));
  const int64_t bytes = file.file.bytes();
  int64_t start = 0; // of the line
  bool hasText = false;
  auto endLine = [&](int64_t end) -> Status {
    if (hasText && end - start > kMostLineBytes)
      return {Code::BadInput, quoted(file.path) + ", line " +
                                  std::to_string(lineAt(file, start)) +
                                  " has " + std::to_string(end - start) +
                                  " bytes; a line has at most " +
                                  std::to_string(kMostLineBytes)};
    if (hasText)
      offsets_.push_back(start);
    start = end + 1;
    hasText = false;
    return Status::ok();
  };
  for (int64_t at = 0; at < bytes; at += kPieceBytes) {
    const int64_t some = std::min(kPieceBytes, bytes - at);
    if (Status s = file.file.read(at, piece.data(), some); !s)
      return s;
    for (int64_t i = 0; i < some; ++i) {
      if (piece[size_t(i)] != '\n')
        hasText |= !isBlank(piece[size_t(i)]);
      else if (Status s = endLine(at + i); !s)
        return s;
    }
  }
  return endLine(bytes);
}

const JsonLines::File &JsonLines::fileOf(int64_t sample) const {
  auto after = std::upper_bound(
      files_.begin(), files_.end(), sample,
      [](int64_t s, const File &file) { return s < file.firstSample; });
  return *std::prev(after);
}

/// The number of the line that begins at a byte, from 1.
int64_t JsonLines::lineAt(const File &file, int64_t offset) const {
  std::vector<char> piece(static_cast<size_t>(kPieceBytes));
  int64_t line = 1;
  for (int64_t at = 0; at < offset; at += kPieceBytes) {
    const int64_t some = std::min(kPieceBytes, offset - at);
    if (!file.file.read(at, piece.data(), some))
      break; // The file was cut meanwhile: its next read says so.
    line += std::count(piece.data(), piece.data() + some, '\n');
  }
  return line;
}

std::string JsonLines::place(int64_t sample) const {
  const File &file = fileOf(sample);
  return "line " + std::to_string(lineAt(file, offsets_[size_t(sample)])) +
         " of " + quoted(file.path);
}

Status JsonLines::read(int64_t sample, const std::vector<JsonColumn> &columns) {
  const File &file = fileOf(sample);
  const int64_t begin = offsets_[size_t(sample)];
  const bool isLast = sample + 1 == samples() || &fileOf(sample + 1) != &file;
  int64_t end = isLast ? file.file.bytes() : offsets_[size_t(sample) + 1];
  // Blank lines may follow, as many as they like.
  end = std::min(end, begin + kMostLineBytes + 1);
  line_.resize(size_t(end - begin));
  if (Status s = file.file.read(begin, line_.data(), end - begin); !s)
    return s;
  const std::string_view text(line_.data(),
                              std::min(line_.find('\n'), line_.size()));
  JsonReader at(text, "line");
  if (readLine(at, columns))
    return Status::ok();
  return {Code::BadInput, quoted(file.path) + ", line " +
                              std::to_string(lineAt(file, begin)) +
                              ", column " + std::to_string(at.failedAt() + 1) +
                              ": " + at.reason()};
}

} // namespace tmc
