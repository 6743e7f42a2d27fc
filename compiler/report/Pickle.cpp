#include "compiler/report/Pickle.h"

using namespace tmc;

static constexpr char kInt = 'J', kLong = '\x8a', kUnicode = 'X';
static constexpr char kPut = 'r', kGet = 'j';

void Pickler::value(int64_t number) {
  item();
  if (number == int32_t(number)) {
    out += kInt;
    word(uint32_t(int32_t(number)));
    return;
  }
  out += kLong; // Its length in a byte, then two's complement.
  out += char(8);
  word(uint32_t(uint64_t(number)));
  word(uint32_t(uint64_t(number) >> 32));
}

void Pickler::string(const std::string &text) {
  auto [at, fresh] = memo.try_emplace(text, uint32_t(memo.size()));
  if (!fresh) {
    out += kGet;
    word(at->second);
    return;
  }
  out += kUnicode;
  word(uint32_t(text.size()));
  out += text;
  out += kPut;
  word(at->second);
}
