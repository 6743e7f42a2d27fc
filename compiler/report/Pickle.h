// Pickle.h - writes Python's pickle format (protocol 2), for plain data only:
// dicts, lists, strings, integers. Equal strings are written once.
//
//     Pickler p;
//     p.beginDict();
//     p.key("size"), p.value(4096);
//     p.end();
//     std::string bytes = p.finish();
//
// Only opcodes that common viewers support are used.
// Source: the opcode table of CPython's Lib/pickletools.py.

#ifndef TMC_COMPILER_REPORT_PICKLE_H
#define TMC_COMPILER_REPORT_PICKLE_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tmc {

class Pickler {
public:
  Pickler() { out += std::string("\x80\x02", 2); }

  void beginDict() { begin('}', 'u'); }
  void beginList() { begin(']', 'e'); }
  void end() {
    out += open.back().opcode;
    open.pop_back();
  }
  void key(const std::string &name) { string(name); }
  void value(const std::string &text) {
    item();
    string(text);
  }
  void value(int64_t number);

  /// The bytes; the caller must have ended every container.
  std::string finish() { return out + "."; }

private:
  struct Container {
    char opcode; // Ends the container.
    int items = 0;
  };
  std::string out;
  std::vector<Container> open;
  std::map<std::string, uint32_t> memo;

  void begin(char opcode, char ending) {
    item();
    out += opcode;
    out += '(';
    open.push_back({ending, 0});
  }
  /// Long lists are added in pieces, because viewers pass each piece on their
  /// stack.
  void item() {
    constexpr int kPiece = 1000;
    if (open.empty() || open.back().opcode != 'e')
      return;
    if (++open.back().items > kPiece) {
      out += "e(";
      open.back().items = 1;
    }
  }
  void string(const std::string &text);
  void word(uint32_t number) {
    for (int i = 0; i < 4; ++i)
      out += char(number >> (8 * i) & 0xff);
  }
};

} // namespace tmc

#endif // TMC_COMPILER_REPORT_PICKLE_H
