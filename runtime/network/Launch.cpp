//===- Launch.cpp - the trainer for this world's number of ranks ----------===//
//
// `tmc compile --devices 2,4` makes a step directory for each number of ranks,
// and this program beside them. It becomes the trainer of its world:
//
//     DIR/train           this program
//     DIR/ranks-2/train   of 2 ranks
//     DIR/ranks-4/train   of 4 ranks
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/Names.h"
#include "runtime/network/Place.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

constexpr char kPrefix[] = "ranks-";

int report(const tmc::Status &status) {
  std::fprintf(stderr, "error: %s\n", tmc::visible(status.message()).c_str());
  return static_cast<int>(status.code());
}

/// The numbers of ranks that have a trainer in `folder`, ascending.
std::vector<int> countsIn(const std::string &folder) {
  std::vector<int> counts;
  DIR *entries = opendir(folder.c_str());
  if (!entries)
    return counts;
  while (const dirent *entry = readdir(entries)) {
    const std::string name = entry->d_name;
    const int count = name.compare(0, std::strlen(kPrefix), kPrefix)
                          ? 0
                          : std::atoi(name.c_str() + std::strlen(kPrefix));
    if (count > 0 && name == kPrefix + std::to_string(count) &&
        !access((folder + "/" + name + "/train").c_str(), X_OK))
      counts.push_back(count);
  }
  closedir(entries);
  std::sort(counts.begin(), counts.end());
  return counts;
}

std::string text(const std::vector<int> &counts) {
  std::string all;
  for (size_t i = 0; i < counts.size(); ++i)
    all += (i == 0                   ? ""
            : i + 1 == counts.size() ? " and "
                                     : ", ") +
           std::to_string(counts[i]);
  return all;
}

} // namespace

int main(int count, char **words) {
  using namespace tmc;
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0 || size_t(length) == sizeof self)
    return report({Code::World, "the path of this program is unknown"});
  const std::string path(self, size_t(length));
  const std::string folder = path.substr(0, path.rfind('/'));
  const std::vector<int> counts = countsIn(folder);
  Place place;
  if (Status s = findPlace(place); !s)
    return report(s);
  int ranks = place.ranks;
  // All have the same flags.
  if (count == 2 && !std::strcmp(words[1], "--help") && !counts.empty())
    ranks = counts.front();
  if (std::find(counts.begin(), counts.end(), ranks) == counts.end())
    return report(
        {Code::Usage,
         counts.empty()
             ? "there is no trainer in '" + folder + "/" + kPrefix + "N'"
             : "the steps here are for " + text(counts) + " ranks, and " +
                   (place.launcher.empty()
                        ? "no launcher started this one: mpirun -n " +
                              std::to_string(counts.front())
                        : place.launcher + " started " +
                              std::to_string(place.ranks))});
  const std::string trainer =
      folder + "/" + kPrefix + std::to_string(ranks) + "/train";
  execv(trainer.c_str(), words);
  return report(
      {Code::World, "can't start '" + trainer + "': " + std::strerror(errno)});
}
