//===- KeptCheckpoints.cpp - several checkpoints of one run ---------------===//

#include "runtime/step/KeptCheckpoints.h"

#include "runtime/step/Step.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tmc {

namespace {

constexpr char kPrefix[] = "step-";
constexpr size_t kLeastDigits = 6, kMostDigits = 18;

std::string nameOf(int64_t step) {
  std::string digits = std::to_string(step);
  digits.insert(0, kLeastDigits - std::min(kLeastDigits, digits.size()), '0');
  return kPrefix + digits;
}

/// The steps with a folder of their own in `directory`, ascending.
std::vector<int64_t> stepsIn(const std::string &directory) {
  std::vector<int64_t> steps;
  DIR *entries = opendir(directory.c_str());
  if (!entries)
    return steps;
  while (const dirent *entry = readdir(entries)) {
    const std::string name = entry->d_name;
    const size_t prefix = std::strlen(kPrefix);
    if (name.compare(0, prefix, kPrefix) || name.size() <= prefix ||
        name.size() > prefix + kMostDigits)
      continue;
    int64_t step = 0;
    for (const char digit : name.substr(prefix))
      step = digit < '0' || digit > '9' || step < 0 ? -1
                                                    : step * 10 + (digit - '0');
    struct stat info;
    if (step >= 0 && name == nameOf(step) &&
        !lstat((directory + "/" + name).c_str(), &info) &&
        S_ISDIR(info.st_mode))
      steps.push_back(step);
  }
  closedir(entries);
  std::sort(steps.begin(), steps.end());
  return steps;
}

/// True if `path` is the folder `directory` or one in it.
bool isIn(const std::string &directory, const std::string &path) {
  for (const std::string &place : {path, path + "/.."}) {
    struct stat one, other;
    if (!path.empty() && !stat(directory.c_str(), &one) &&
        !stat(place.c_str(), &other) && one.st_dev == other.st_dev &&
        one.st_ino == other.st_ino)
      return true;
  }
  return false;
}

bool hasCheckpoint(const std::string &directory) {
  return !access((directory + "/" + kCheckpointFile).c_str(), F_OK);
}

} // namespace

Status KeptCheckpoints::start(const std::string &origin) const {
  if (!count_)
    return Status::ok();
  if (mkdir(directory_.c_str(), 0777) && errno != EEXIST)
    return {Code::World,
            "can't make '" + directory_ + "': " + std::strerror(errno)};
  const std::vector<int64_t> steps = stepsIn(directory_);
  if (steps.empty() || isIn(directory_, origin))
    return Status::ok();
  return {Code::Usage, "'" + directory_ +
                           "' holds the checkpoints of a run, up "
                           "to '" +
                           nameOf(steps.back()) + "'; go on with --resume '" +
                           directory_ + "', or save elsewhere"};
}

std::string KeptCheckpoints::placeOf(int64_t step) const {
  return count_ ? directory_ + "/" + nameOf(step) : directory_;
}

Status KeptCheckpoints::prune() const {
  if (!count_)
    return Status::ok();
  const std::vector<int64_t> steps = stepsIn(directory_);
  const int64_t old = int64_t(steps.size()) - count_;
  for (int64_t i = 0; i < old; ++i) {
    const std::string place = directory_ + "/" + nameOf(steps[size_t(i)]);
    const int folder =
        ::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
      continue; // Removed by another hand.
    bool isGone = true;
    for (const char *name : {kCheckpointFile, kModelFile})
      isGone &= !unlinkat(folder, name, 0) || errno == ENOENT;
    const int error = errno;
    close(folder);
    if (!isGone)
      return {Code::World, "can't remove the checkpoint in '" + place +
                               "': " + std::strerror(error)};
    (void)rmdir(place.c_str());
  }
  return Status::ok();
}

std::string KeptCheckpoints::newestIn(const std::string &directory) {
  if (hasCheckpoint(directory))
    return directory;
  const std::vector<int64_t> steps = stepsIn(directory);
  for (size_t i = steps.size(); i-- > 0;)
    if (const std::string place = directory + "/" + nameOf(steps[i]);
        hasCheckpoint(place))
      return place;
  return directory;
}

Status KeptCheckpoints::look(const std::string &directory, bool &isThere) {
  isThere = hasCheckpoint(newestIn(directory));
  struct stat info;
  const std::string inside = directory + "/" + kCheckpointFile;
  if (isThere || !stat(inside.c_str(), &info) || errno == ENOENT)
    return Status::ok();
  return {Code::World, "can't look for a checkpoint in '" + directory +
                           "': " + std::strerror(errno)};
}

} // namespace tmc
