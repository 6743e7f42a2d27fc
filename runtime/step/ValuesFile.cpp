//===- ValuesFile.cpp - writes files of a step's values -------------------===//

#include "runtime/step/ValuesFile.h"

#include "runtime/kernels/Names.h"
#include "runtime/kernels/Storage.h"
#include "runtime/step/RankFile.h"
#include "runtime/step/Values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace tmc {

using namespace values;

std::string FileSum::digits() const {
  char text[kSumDigits + 1];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(sum_));
  return text;
}

namespace {

/// Converts `count` plain floats to another type, rounded to nearest. False if
/// a finite value becomes infinite.
bool convert(DType from, const char *data, int64_t count, DType to,
             std::vector<char> &converted) {
  converted.resize(size_t(count * sizeOf(to)));
  bool holdsAll = true;
  auto convertTo = [&](auto like) {
    for (int64_t i = 0; i < count; ++i) {
      const float value = floatAt(from, data, i);
      decltype(like) stored;
      if constexpr (std::is_same_v<decltype(like), float>)
        stored = value;
      else
        stored = narrow<decltype(like)>(value);
      std::memcpy(converted.data() + i * int64_t(sizeof stored), &stored,
                  sizeof stored);
      holdsAll &= !std::isfinite(value) ||
                  std::isfinite(floatAt(to, converted.data(), i));
    }
  };
  if (to == DType::BF16)
    convertTo(bf16());
  else if (to == DType::F16)
    convertTo(f16());
  else
    convertTo(float());
  return holdsAll;
}

/// Collects the `names` whose tensors are finite in the existing file.
Status finiteIn(const std::string &path, const std::vector<std::string> &names,
                std::vector<std::string> &finite) {
  SafetensorsFile old;
  if (!SafetensorsFile::open(path, old))
    return Status::ok(); // Nothing of value is replaced.
  for (const std::string &name : names) {
    const SafeTensor *tensor = old.find(name);
    if (!tensor || !isPlainFloat(tensor->type))
      continue;
    bool isGood = true;
    if (Status s = eachFilePiece(old, *tensor,
                                 [&](const char *data, int64_t bytes) {
                                   isGood &=
                                       isFinite(tensor->type, data,
                                                bytes / sizeOf(tensor->type));
                                   return Status::ok();
                                 });
        !s)
      return s;
    if (isGood)
      finite.push_back(name);
  }
  return Status::ok();
}

/// True if a step may have produced a non-finite value here.
bool isMade(const TensorInfo &info) {
  return info.role != Role::Param || info.trainable;
}

/// Writes one file.
class Writer {
public:
  Writer(const Homes &homes, const std::string &name,
         const FileContents &contents)
      : homes_(homes), contents_(contents), name_(name),
        file_(homes.device().peers) {}

  Status write(const std::string &directory) {
    list();
    const int64_t last = tensors_.empty() ? 0 : tensors_.back().second.end;
    if (Status s = file_.create(directory, name_, body() + last); !s)
      return s;
    Status own;
    if (Status s = writePieces(own); !s)
      return s;
    if (own && file_.isFirst())
      own = writePassed();
    if (Status s = file_.settle(own); !s)
      return s;
    if (Status s = file_.agree(readSplit()); !s)
      return s;
    if (Status s = shareNotes(); !s)
      return s;
    return file_.commit(file_.isFirst() ? finish(directory) : Status::ok());
  }

private:
  /// A piece of a tensor.
  struct Piece {
    size_t tensor;
    int64_t at, bytes;
    int64_t owner = 0; // The rank that has it, or its first byte.
    bool isSplit = false, travels = false;
  };
  /// The facts about a piece that its owner finds.
  struct Note {
    uint64_t sum = 0, isGood = 0;
  };

  int64_t body() const { return int64_t(header_.size()); }

  /// Lays out the file.
  void list() {
    for (const Named &named : contents_.tensors) {
      const TensorInfo &info = *named.info;
      SafeTensor tensor;
      tensor.type = typeIn(info.type);
      tensor.shape.assign(info.dims, info.dims + info.rank);
      tensors_.emplace_back(named.name, tensor);
      if (!info.shard || info.chunk)
        wholeBytes_ += info.bytes();
    }
    for (const Passed &passed : contents_.passed) {
      tensors_.emplace_back(passed.name, passed.tensor);
      tensors_.back().second.type = typeIn(passed.tensor.type);
    }
    std::map<std::string, std::string> metadata = contents_.metadata;
    if (contents_.hasSum)
      metadata[kSumKey] = std::string(kSumDigits, '0');
    header_ = safetensorsHeader(tensors_, metadata);
  }

  DType typeIn(DType type) const {
    return contents_.type && isPlainFloat(type) ? *contents_.type : type;
  }

  /// Calls visit(piece) for all pieces, in order, until it fails.
  template <typename F> Status eachPiece(F &&visit) const {
    int64_t before = 0; // of `wholeBytes_`
    for (size_t i = 0; i < contents_.tensors.size(); ++i) {
      const TensorInfo &info = *contents_.tensors[i].info;
      for (int64_t at = 0; at < info.bytes(); at += kPieceBytes) {
        Piece piece = {i, at, std::min(kPieceBytes, info.bytes() - at)};
        piece.travels = info.chunk || (info.shard && !file_.isShared());
        if (info.shard && !piece.travels) {
          const int64_t size = sizeOf(info.type),
                        last = (at + piece.bytes - 1) / size;
          piece.owner = file_.rankOf(info.shardOf(at / size), 0);
          piece.isSplit = info.shardOf(at / size) != info.shardOf(last);
        } else if (file_.isShared()) {
          piece.owner = before * file_.ranks() / wholeBytes_;
          before += piece.bytes;
        }
        if (Status s = visit(piece); !s)
          return s;
      }
    }
    return Status::ok();
  }

  /// Writes this rank's bytes of all pieces. `own`: its error. An error of the
  /// network ends it at once.
  Status writePieces(Status &own) {
    std::vector<char> bytes(static_cast<size_t>(kPieceBytes));
    return eachPiece([&](const Piece &piece) {
      owners_.push_back(piece.owner);
      notes_.emplace_back();
      const TensorInfo &info = *contents_.tensors[piece.tensor].info;
      int64_t first = piece.at, end = piece.at + piece.bytes;
      if (piece.travels) {
        if (Status s = homes_.read(info, first, bytes.data(), piece.bytes); !s)
          return s;
      } else if (piece.isSplit) {
        const auto [heldFirst, heldEnd] = homes_.heldBytes(info);
        first = std::max(first, heldFirst);
        end = std::min(end, heldEnd);
      }
      const bool isIts = piece.isSplit ? file_.tensorPlace() == 0
                                       : piece.owner == file_.place();
      if (!own || first >= end || !isIts)
        return Status::ok();
      if (!piece.travels)
        own = homes_.readHeld(info, first, bytes.data(), end - first);
      if (own)
        own = put(piece, first, bytes.data(), end - first);
      return Status::ok();
    });
  }

  /// Writes bytes [first, first + bytes) of a piece's tensor.
  Status put(const Piece &piece, int64_t first, const char *data,
             int64_t bytes) {
    const Named &named = contents_.tensors[piece.tensor];
    const DType type = named.info->type;
    Note &note = notes_.back();
    note.isGood = isGood(*named.info, type, data, bytes);
    const SafeTensor &tensor = tensors_[piece.tensor].second;
    return convertAndWrite(type, tensor,
                           first / sizeOf(type) * sizeOf(tensor.type), data,
                           bytes, named.name, note.sum);
  }

  Status readPiece(const Piece &piece, std::vector<char> &bytes) {
    const SafeTensor &tensor = tensors_[piece.tensor].second;
    const int64_t from = sizeOf(contents_.tensors[piece.tensor].info->type),
                  to = sizeOf(tensor.type);
    bytes.resize(size_t(piece.bytes / from * to));
    return file_.read(body() + tensor.begin + piece.at / from * to,
                      bytes.data(), int64_t(bytes.size()));
  }

  /// Reads the pieces back of which several ranks wrote parts.
  Status readSplit() {
    std::vector<char> bytes;
    size_t number = 0;
    return eachPiece([&](const Piece &piece) {
      Note &note = notes_[number++];
      if (!piece.isSplit || piece.owner != file_.place())
        return Status::ok();
      const TensorInfo &info = *contents_.tensors[piece.tensor].info;
      if (Status s = readPiece(piece, bytes); !s)
        return s;
      const int64_t count = int64_t(bytes.size());
      note.isGood =
          isGood(info, tensors_[piece.tensor].second.type, bytes.data(), count);
      note.sum = checksumOf(bytes.data(), count);
      return Status::ok();
    });
  }

  static bool isGood(const TensorInfo &info, DType type, const char *data,
                     int64_t bytes) {
    return !isPlainFloat(type) || !isMade(info) ||
           isFinite(type, data, bytes / sizeOf(type));
  }

  /// Writes the tensors that are copied from another file.
  Status writePassed() {
    for (size_t i = 0; i < contents_.passed.size(); ++i) {
      const Passed &passed = contents_.passed[i];
      const SafeTensor &tensor = tensors_[contents_.tensors.size() + i].second;
      const DType type = passed.tensor.type;
      int64_t at = 0;
      auto pass = [&](char *data, int64_t bytes) {
        int64_t count;
        if (passed.added && bytes == sizeof count) {
          std::memcpy(&count, data, sizeof count);
          count += passed.added;
          std::memcpy(data, &count, sizeof count);
        }
        const int64_t to = at / sizeOf(type) * sizeOf(tensor.type);
        at += bytes;
        passedSums_.emplace_back();
        return convertAndWrite(type, tensor, to, data, bytes, passed.name,
                               passedSums_.back());
      };
      if (Status s = eachFilePiece(contents_.beside, passed.tensor, pass); !s)
        return s;
    }
    return Status::ok();
  }

  /// Writes numbers to byte `at` of a tensor of the file, as it has them.
  Status convertAndWrite(DType from, const SafeTensor &tensor, int64_t at,
                         const char *data, int64_t bytes,
                         const std::string &name, uint64_t &sum) {
    if (tensor.type != from) {
      if (!convert(from, data, bytes / sizeOf(from), tensor.type, converted_))
        return {Code::BadInput, "'" + name + "' has numbers that " +
                                    nameOf(tensor.type) + " can't hold; '" +
                                    name_ + "' isn't written"};
      data = converted_.data();
      bytes = int64_t(converted_.size());
    }
    sum = checksumOf(data, bytes);
    return file_.write(body() + tensor.begin + at, data, bytes);
  }

  /// Brings the notes about all pieces together.
  Status shareNotes() {
    std::vector<Note> its;
    for (int64_t rank = 0; rank < file_.ranks() && file_.ranks() > 1; ++rank) {
      its.clear();
      for (size_t i = 0; i < notes_.size(); ++i)
        if (owners_[i] == rank)
          its.push_back(notes_[i]);
      if (Status s =
              file_.share(rank, its.data(), int64_t(its.size() * sizeof(Note)));
          !s)
        return s;
      size_t next = 0;
      for (size_t i = 0; i < notes_.size(); ++i)
        if (owners_[i] == rank)
          notes_[i] = its[next++];
    }
    return Status::ok();
  }

  /// Reads a piece of each other rank back. A folder that keeps the bytes of
  /// one host alone, as one over a store of objects may, looks shared until
  /// then.
  Status checkArrived() {
    std::vector<const Note *> last(size_t(file_.ranks()));
    std::vector<Piece> pieces(last.size());
    size_t number = 0;
    (void)eachPiece([&](const Piece &piece) {
      const Note &note = notes_[number++];
      if (piece.isSplit || piece.owner == 0)
        return Status::ok();
      last[size_t(piece.owner)] = &note;
      pieces[size_t(piece.owner)] = piece;
      return Status::ok();
    });
    std::vector<char> bytes;
    for (size_t rank = 0; rank < last.size(); ++rank) {
      if (!last[rank])
        continue;
      if (Status s = readPiece(pieces[rank], bytes); !s)
        return s;
      if (checksumOf(bytes.data(), int64_t(bytes.size())) != last[rank]->sum)
        return {Code::World,
                "the bytes that rank " + std::to_string(rank) +
                    " wrote aren't in '" + name_ +
                    "': the folder's file system takes them from one host "
                    "alone"};
    }
    return Status::ok();
  }

  /// Checks that no finite value is lost, and writes the header.
  Status finish(const std::string &directory) {
    FileSum sum;
    sum.add(header_.data(), body());
    std::vector<std::string> broken, lost;
    size_t number = 0;
    (void)eachPiece([&](const Piece &piece) {
      const Note &note = notes_[number++];
      const std::string &name = contents_.tensors[piece.tensor].name;
      sum.addPiece(note.sum);
      if (!note.isGood && (broken.empty() || broken.back() != name))
        broken.push_back(name);
      return Status::ok();
    });
    for (const uint64_t each : passedSums_)
      sum.addPiece(each);
    const std::string path = directory + "/" + name_;
    if (!broken.empty())
      if (Status s = finiteIn(path, broken, lost); !s)
        return s;
    if (!lost.empty())
      return {Code::BadInput,
              listNames(lost) + (lost.size() == 1 ? " isn't" : " aren't") +
                  " finite after step " + std::to_string(contents_.step) +
                  "; '" + path + "' is, and stays as it was"};
    if (Status s = checkArrived(); !s)
      return s;
    if (contents_.hasSum)
      header_.replace(header_.find(kSumText) + std::strlen(kSumText),
                      kSumDigits, sum.digits());
    return file_.write(0, header_.data(), body());
  }

  const Homes &homes_;
  const FileContents &contents_;
  const std::string name_;
  RankFile file_;
  std::string header_;
  std::vector<std::pair<std::string, SafeTensor>> tensors_;
  /// Of the tensors that all ranks hold, or bring together.
  int64_t wholeBytes_ = 0;
  std::vector<int64_t> owners_;
  std::vector<Note> notes_; // by piece, as `owners_`
  std::vector<uint64_t> passedSums_;
  std::vector<char> converted_;
};

} // namespace

Status values::writeFile(const Homes &homes, const std::string &directory,
                         const std::string &name,
                         const FileContents &contents) {
  return Writer(homes, name, contents).write(directory);
}

} // namespace tmc
