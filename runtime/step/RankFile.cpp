//===- RankFile.cpp - a file that all ranks of a run write ----------------===//

#include "runtime/step/RankFile.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <vector>

namespace tmc {

/// A message has a path and a reason.
static constexpr int64_t kMostMessageBytes = 2 * PATH_MAX;

Status RankFile::share(int64_t from, void *data, int64_t bytes) const {
  if (!peers_ || bytes == 0)
    return Status::ok();
  const int64_t across = size(Axis::Tensor);
  if (across > 1)
    if (Status s = peers_->share(Axis::Tensor, int(from % across), data, bytes);
        !s)
      return s;
  return peers_->share(Axis::Data, int(from / across), data, bytes);
}

Status RankFile::gather(void *to, const void *from, int64_t bytes) const {
  if (!peers_) {
    std::memcpy(to, from, size_t(bytes));
    return Status::ok();
  }
  const int64_t across = size(Axis::Tensor);
  std::vector<char> row(size_t(across > 1 ? across * bytes : 0));
  if (across > 1) {
    if (Status s = peers_->gather(Axis::Tensor, row.data(), from, bytes,
                                  across * bytes);
        !s)
      return s;
    from = row.data();
  }
  return peers_->gather(Axis::Data, to, from, across * bytes, ranks() * bytes);
}

Status RankFile::agree(const Status &own) {
  if (!peers_)
    return own;
  struct Report {
    int64_t code, bytes; // of the message
  };
  const std::string message = own.message().substr(0, kMostMessageBytes);
  const Report mine = {int64_t(own.code()), int64_t(message.size())};
  std::vector<Report> all(static_cast<size_t>(ranks()));
  if (Status s = gather(all.data(), &mine, sizeof mine); !s)
    return s;
  const auto failed = std::find_if(all.begin(), all.end(), [](const Report &r) {
    return Code(r.code) != Code::Ok;
  });
  if (failed == all.end())
    return Status::ok();
  const int64_t rank = failed - all.begin();
  std::string text = message;
  text.resize(size_t(std::clamp<int64_t>(failed->bytes, 0, kMostMessageBytes)));
  if (Status s = share(rank, text.data(), int64_t(text.size())); !s)
    return s;
  file_.discard();
  // No rank ends before the temporary file is gone.
  if (Status s = gather(all.data(), &mine, sizeof mine); !s)
    return s;
  if (rank == place())
    return own;
  return peers_->explain(
      {Code(failed->code), "rank " + std::to_string(rank) + ": " + text});
}

Status RankFile::create(const std::string &directory, const std::string &name,
                        int64_t bytes) {
  Status made;
  char temporary[NAME_MAX + 1] = {};
  if (isFirst()) {
    made = file_.create(directory, name);
    if (made)
      made = file_.resize(bytes);
    std::strncpy(temporary, file_.temporary().c_str(), NAME_MAX);
  }
  if (Status s = agree(made); !s)
    return s;
  if (Status s = share(0, temporary, sizeof temporary); !s)
    return s;
  temporary[NAME_MAX] = '\0';
  const char sees = isFirst() || file_.join(directory, name, temporary, bytes);
  std::vector<char> all(static_cast<size_t>(ranks()));
  if (Status s = gather(all.data(), &sees, 1); !s)
    return s;
  isShared_ = std::all_of(all.begin(), all.end(), [](char c) { return c; });
  if (!isShared_ && !isFirst())
    file_.discard();
  return Status::ok();
}

Status RankFile::settle(const Status &own) {
  // One rank alone syncs in commit().
  const bool hasWritten = peers_ && (isFirst() || isShared_);
  return agree(own && hasWritten ? file_.sync() : own);
}

Status RankFile::commit(const Status &own) {
  const Status done = own && isFirst() ? file_.commit() : own;
  // Rank 0 knows at once that the file is there.
  char isDone = done.isOk();
  if (Status s = share(0, &isDone, 1); !s)
    return s;
  return isDone ? Status::ok() : agree(done);
}

} // namespace tmc
