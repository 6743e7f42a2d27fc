//===- RankFile.h - a file that all ranks of a run write --------*- C++ -*-===//
//
// The ranks of a stage write one file together, each its own bytes at their
// places. The file replaces an older one atomically, or never (File.h):
//
//     rank 0                                the others
//     creates the temporary file    ---->   open it by its name, if they see it
//     writes its bytes, syncs               write their bytes, sync
//             all agree that all is written: settle(), then read()
//     writes the header, syncs, renames
//     says that the file is there: commit()
//
// The name has random digits, so a rank that sees it has rank 0's folder. Where
// a rank doesn't, rank 0 writes all bytes.
//
// An error of one rank is an error of all. It comes out of the next call by
// which they agree, after the temporary file is removed: a rank with an error
// goes on to that call. All ranks make the same calls, in one order.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_STEP_RANKFILE_H
#define TMC_RUNTIME_STEP_RANKFILE_H

#include "runtime/kernels/Ranks.h"
#include "runtime/step/File.h"

#include <cstdint>
#include <string>

namespace tmc {

class RankFile {
public:
  /// Null: there is one rank.
  explicit RankFile(Peers *peers) : peers_(peers) {}

  /// All ranks of the axes dp and tp, in the order of the mesh.
  int64_t ranks() const { return size(Axis::Data) * size(Axis::Tensor); }
  int64_t place() const {
    return rankOf(peers_ ? peers_->place(Axis::Data) : 0, tensorPlace());
  }
  int64_t tensorPlace() const {
    return peers_ ? peers_->place(Axis::Tensor) : 0;
  }
  int64_t rankOf(int64_t data, int64_t tensor) const {
    return data * size(Axis::Tensor) + tensor;
  }
  bool isFirst() const { return place() == 0; }

  /// Rank 0 creates the directory, if it doesn't exist, and a temporary file of
  /// `bytes` bytes. All agree.
  Status create(const std::string &directory, const std::string &name,
                int64_t bytes);
  /// True if each rank writes; else rank 0 writes all.
  bool isShared() const { return isShared_; }
  Status write(int64_t at, const void *data, int64_t bytes) {
    return file_.writeAt(at, data, bytes);
  }
  /// The bytes of rank `from`, on all ranks.
  Status share(int64_t from, void *data, int64_t bytes) const;

  /// Ok if `own` is on all ranks; else the first rank's that isn't, and the
  /// temporary file is gone.
  Status agree(const Status &own);
  /// Brings to the disk what this rank wrote, if all went well on it. All
  /// agree.
  Status settle(const Status &own);
  /// Reads bytes that any rank wrote before settle().
  Status read(int64_t at, void *to, int64_t bytes) {
    return file_.readBack(at, to, bytes);
  }
  /// Rank 0 puts the file in its place, if all went well on it. `own` is its
  /// alone.
  Status commit(const Status &own);

private:
  int64_t size(Axis axis) const { return peers_ ? peers_->size(axis) : 1; }
  Status gather(void *to, const void *from, int64_t bytes) const;

  Peers *peers_;
  AtomicFile file_;
  bool isShared_ = false;
};

} // namespace tmc

#endif // TMC_RUNTIME_STEP_RANKFILE_H
