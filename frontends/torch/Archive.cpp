#include "frontends/torch/Archive.h"
#include "compiler/support/Escape.h"
#include "frontends/Checked.h"

#include <zip.h>

#include <algorithm>
#include <cstring>
#include <optional>

using namespace tmc;
using namespace tmc::torch_import;

/// More entries than any model has; a directory of millions is an attack.
constexpr int64_t kMaxEntries = 1 << 20;

/// Deflate expands one byte to at most 1032.
constexpr int64_t kMaxInflation = 1032;

/// The mapped file as libzip reads it. libzip counts references and may use
/// this state until it closes the file.
struct Archive::Zip {
  explicit Zip(SafeFile file) : file(std::move(file)) {}
  ~Zip() {
    if (archive)
      zip_discard(archive);
  }
  static zip_int64_t callback(void *state, void *data, zip_uint64_t length,
                              zip_source_cmd_t command);

  SafeFile file;
  int64_t position = 0;
  int64_t lastRead = 0; ///< The offset of the last read.
  zip_error_t error = {};
  zip_t *archive = nullptr;
};

zip_int64_t Archive::Zip::callback(void *state, void *data, zip_uint64_t length,
                                   zip_source_cmd_t command) {
  Zip &zip = *static_cast<Zip *>(state);
  std::string_view bytes = zip.file.bytes();
  int64_t size = bytes.size();
  switch (command) {
  case ZIP_SOURCE_OPEN:
    zip.position = 0;
    return 0;
  case ZIP_SOURCE_READ: {
    int64_t count = std::min<zip_uint64_t>(length, size - zip.position);
    std::memcpy(data, bytes.data() + zip.position, count);
    zip.lastRead = zip.position;
    zip.position += count;
    return count;
  }
  case ZIP_SOURCE_SEEK: {
    zip_int64_t to = zip_source_seek_compute_offset(zip.position, size, data,
                                                    length, &zip.error);
    if (to < 0 || to > size)
      return -1;
    zip.position = to;
    return 0;
  }
  case ZIP_SOURCE_TELL:
    return zip.position;
  case ZIP_SOURCE_STAT: {
    zip_stat_t *stat = static_cast<zip_stat_t *>(data);
    zip_stat_init(stat);
    stat->valid = ZIP_STAT_SIZE;
    stat->size = size;
    return sizeof(*stat);
  }
  case ZIP_SOURCE_ERROR:
    return zip_error_to_data(&zip.error, data, length);
  case ZIP_SOURCE_SUPPORTS:
    return zip_source_make_command_bitmap(
        ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT,
        ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL,
        ZIP_SOURCE_SUPPORTS, -1);
  default: // Closing and freeing: we own the state.
    return 0;
  }
}

Archive::Archive(std::unique_ptr<Zip> zip) : zip(std::move(zip)) {}
Archive::Archive(Archive &&) = default;
Archive::~Archive() = default;

const std::string &Archive::path() const { return zip->file.path(); }

/// True if each part of `name` is a plain name.
static bool isPlain(std::string_view name) {
  if (name.empty() || name[0] == '/' ||
      name.find('\\') != std::string_view::npos)
    return false;
  while (!name.empty()) {
    size_t slash = std::min(name.find('/'), name.size());
    std::string_view part = name.substr(0, slash);
    if (part == "..")
      return false;
    name.remove_prefix(std::min(slash + 1, name.size()));
  }
  return true;
}

Expected<Archive> Archive::open(SafeFile file) {
  auto owned = std::make_unique<Zip>(std::move(file));
  Zip &zip = *owned;
  Archive result(std::move(owned));
  auto broken = [&](const std::string &why) {
    return Failure::input("'" + zip.file.path() +
                          "' is no sound archive: " + why);
  };
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t *source =
      zip_source_function_create(&Zip::callback, &zip, &error);
  if (!source)
    return Failure::world(zip_error_strerror(&error));
  zip.archive =
      zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
  if (!zip.archive) {
    std::string why = zip_error_strerror(&error);
    zip_source_free(source);
    zip_error_fini(&error);
    return broken(why);
  }
  zip_error_fini(&error);

  zip_int64_t count = zip_get_num_entries(zip.archive, 0);
  if (count > kMaxEntries)
    return broken("it has " + std::to_string(count) + " entries");
  std::string root;
  std::vector<std::pair<int64_t, int64_t>> ranges; // [begin, end)
  int64_t fileSize = zip.file.bytes().size();
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    if (zip_stat_index(zip.archive, i, 0, &stat) != 0)
      return broken(zip_strerror(zip.archive));
    std::string name = stat.name;
    if (std::string fault = nameFault(name); !fault.empty())
      return broken("the name of an entry, '" + visible(name, /*isName=*/true) +
                    "', " + fault);
    if (!isPlain(name))
      return broken("an entry is named '" + name + "'");
    if (name.back() == '/')
      continue; // A folder.
    size_t slash = name.find('/');
    std::string folder =
        slash == std::string::npos ? "" : name.substr(0, slash);
    if (folder.empty() || (!root.empty() && folder != root))
      return broken("its entries aren't in one folder");
    root = folder;
    name.erase(0, slash + 1);
    if (stat.encryption_method != ZIP_EM_NONE)
      return broken("'" + name + "' is encrypted");
    if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
      return broken("'" + name + "' is compressed by method " +
                    std::to_string(stat.comp_method));
    Entry entry;
    entry.index = i;
    entry.stored = stat.comp_method == ZIP_CM_STORE;
    if (stat.size > INT64_MAX || stat.comp_size > INT64_MAX ||
        (entry.stored && stat.size != stat.comp_size))
      return broken("'" + name + "' has a size that isn't one");
    auto most = checkedMul(checkedAdd(stat.comp_size, 1).value_or(INT64_MAX),
                           kMaxInflation);
    if (!entry.stored && most && static_cast<int64_t>(stat.size) > *most)
      return broken("'" + name + "' can't have " + std::to_string(stat.size) +
                    " bytes");
    entry.size = stat.size;
    int64_t length = stat.comp_size;
    if (length > 0) {
      // Reads the first stored byte: the offset of libzip's read is the
      // entry's.
      zip_file_t *opened = zip_fopen_index(zip.archive, i, ZIP_FL_COMPRESSED);
      char byte;
      bool isRead = opened && zip_fread(opened, &byte, 1) == 1;
      if (opened)
        zip_fclose(opened);
      entry.offset = zip.lastRead;
      if (!isRead || !fitsWithin(entry.offset, length, fileSize))
        return broken("'" + name + "' isn't in it");
      ranges.push_back({entry.offset, entry.offset + length});
    }
    if (!result.entries.emplace(name, entry).second)
      return broken("it has two entries named '" + name + "'");
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second)
      return broken("two entries share bytes");
  return result;
}

std::vector<std::string> Archive::names() const {
  std::vector<std::string> list;
  for (const auto &[name, entry] : entries)
    list.push_back(name);
  return list;
}

int64_t Archive::sizeOf(const std::string &name) const {
  auto found = entries.find(name);
  return found == entries.end() ? -1 : found->second.size;
}

Expected<std::string_view> Archive::read(const std::string &name,
                                         int64_t limitBytes) {
  auto found = entries.find(name);
  if (found == entries.end())
    return Failure::world("'" + path() + "' has no entry '" + name + "'");
  const Entry &entry = found->second;
  if (entry.size == 0)
    return std::string_view();
  if (entry.stored)
    return zip->file.bytes().substr(entry.offset, entry.size);
  // A few bytes of a file can inflate to all of the machine's memory.
  if (entry.size > limitBytes)
    return Failure::input("'" + name + "' in '" + path() +
                          "' is compressed and has " +
                          std::to_string(entry.size) + " bytes, more than " +
                          std::to_string(limitBytes))
        .note("store it uncompressed, as torch.export.save() does");
  auto [text, isNew] = inflated.try_emplace(name);
  if (!isNew)
    return std::string_view(text->second);
  text->second.resize(entry.size);
  zip_file_t *opened = zip_fopen_index(zip->archive, entry.index, 0);
  int64_t got =
      opened ? zip_fread(opened, text->second.data(), entry.size) : -1;
  // libzip compares the checksum at the end.
  char more;
  bool isWhole = got == entry.size && zip_fread(opened, &more, 1) == 0;
  if (opened)
    zip_fclose(opened);
  if (!isWhole) {
    inflated.erase(text);
    return Failure::input("'" + name + "' in '" + path() +
                          "' can't be inflated");
  }
  return std::string_view(text->second);
}
