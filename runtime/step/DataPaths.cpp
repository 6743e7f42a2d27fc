//===- DataPaths.cpp - the files of one --data value ----------------------===//

#include "runtime/step/DataPaths.h"

#include <algorithm>
#include <glob.h>
#include <unistd.h>

namespace tmc {

static bool exists(const std::string &path) {
  return access(path.c_str(), F_OK) == 0;
}

/// Adds the files that match `pattern`.
static Status addMatches(const std::string &pattern,
                         std::vector<std::string> &paths) {
  glob_t found = {};
  const int fault = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> names;
  if (!fault)
    names.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (fault == GLOB_NOSPACE)
    return {Code::World, "out of host memory"};
  if (names.empty())
    return {Code::BadInput, "no file matches '" + pattern + "'"};
  std::sort(names.begin(), names.end());
  paths.insert(paths.end(), names.begin(), names.end());
  return Status::ok();
}

Status listPaths(const std::string &text, std::vector<std::string> &paths) {
  paths.clear();
  if (exists(text)) {
    paths.push_back(text);
    return Status::ok();
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty())
      return {Code::Usage, "'" + text + "' has an empty file name"};
    if (exists(part) || part.find_first_of("*?[") == std::string::npos)
      paths.push_back(part);
    else if (Status s = addMatches(part, paths); !s)
      return s;
  }
  return Status::ok();
}

bool pathsExist(const std::string &text) {
  std::vector<std::string> paths;
  return listPaths(text, paths) &&
         std::all_of(paths.begin(), paths.end(), exists);
}

} // namespace tmc
