//===- Image.cpp - symbols of the program that holds the kernels ----------===//

#include "test/cuda/emulator/Image.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <link.h>
#include <unistd.h>

namespace tmc::emulator {

namespace {

std::string demangle(const std::string &name) {
  int status = 0;
  char *text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string out = status == 0 && text ? text : name;
  std::free(text);
  const std::string anonymous = "(anonymous namespace)::";
  for (size_t at; (at = out.find(anonymous)) != std::string::npos;)
    out.erase(at, anonymous.size());
  return out;
}

/// The loaded module that this function is in.
int findSelf(dl_phdr_info *info, size_t, void *to) {
  Image &image = *static_cast<Image *>(to);
  const uintptr_t self = reinterpret_cast<uintptr_t>(&findSelf);
  uintptr_t begin = ~uintptr_t(0), end = 0;
  std::vector<std::pair<uintptr_t, uintptr_t>> constants;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto &part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD)
      continue;
    const uintptr_t from = info->dlpi_addr + part.p_vaddr;
    begin = std::min(begin, from);
    end = std::max(end, from + part.p_memsz);
    if (!(part.p_flags & PF_W))
      constants.emplace_back(from, from + part.p_memsz);
  }
  // Constants that the dynamic linker relocates are read-only later.
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_GNU_RELRO) {
      const uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
      constants.emplace_back(from, from + info->dlpi_phdr[i].p_memsz);
    }
  if (self < begin || self >= end)
    return 0;
  image.base = info->dlpi_addr;
  image.begin = begin;
  image.end = end;
  image.constants = constants;
  image.path = info->dlpi_name;
  if (image.path.empty()) {
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    image.path.assign(path, n > 0 ? size_t(n) : 0);
  }
  return 1;
}

/// "f()::x" as "x of f()".
std::string variableName(const std::string &mangled) {
  const std::string whole = demangle(mangled);
  const size_t at = whole.rfind("::");
  if (at == std::string::npos)
    return whole;
  return whole.substr(at + 2) + " of " + whole.substr(0, at);
}

} // namespace

void Image::read() {
  dl_iterate_phdr(findSelf, this);
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  auto at = [&](size_t offset) { return bytes.data() + offset; };
  if (bytes.size() < sizeof(Elf64_Ehdr) ||
      std::memcmp(at(0), ELFMAG, SELFMAG) != 0)
    return;
  Elf64_Ehdr header;
  std::memcpy(&header, at(0), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (header.e_shoff + sections.size() * sizeof(Elf64_Shdr) > bytes.size())
    return;
  std::memcpy(sections.data(), at(header.e_shoff),
              sections.size() * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr &section : sections) {
    if (section.sh_type != SHT_SYMTAB)
      continue;
    const char *names = at(sections[section.sh_link].sh_offset);
    for (size_t i = 0; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
      Elf64_Sym symbol;
      std::memcpy(&symbol, at(section.sh_offset + i * sizeof symbol),
                  sizeof symbol);
      const std::string name = names + symbol.st_name;
      if (symbol.st_shndx == SHN_UNDEF)
        continue;
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
        functions.push_back({base + symbol.st_value, name});
      else if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT &&
               name.rfind("_ZZ", 0) == 0 && symbol.st_size > 0 &&
               symbol.st_value % kSharedSlot == 0)
        shared.push_back(
            {variableName(name), base + symbol.st_value, symbol.st_size});
    }
  }
  auto before = [](const auto &a, const auto &b) { return a.at < b.at; };
  std::sort(functions.begin(), functions.end(), before);
  std::sort(shared.begin(), shared.end(), before);
}

const char *Image::symbolAt(uintptr_t address) const {
  auto after =
      std::upper_bound(functions.begin(), functions.end(), address,
                       [](uintptr_t a, const Function &f) { return a < f.at; });
  return after == functions.begin() ? nullptr : (after - 1)->name.c_str();
}

std::string Image::functionAt(uintptr_t address) const {
  const char *symbol = symbolAt(address);
  return symbol ? demangle(symbol) : "?";
}

uintptr_t imageBase = 0;

const Image &image() {
  static const Image *read = [] {
    auto *made = new Image;
    made->read();
    imageBase = made->base;
    return made;
  }();
  return *read;
}

} // namespace tmc::emulator
