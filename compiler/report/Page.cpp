#include "compiler/report/Page.h"

#include "compiler/support/Escape.h"

#include "llvm/ADT/StringExtras.h"

using namespace tmc;
using llvm::StringRef;

std::string tmc::filled(StringRef page, llvm::ArrayRef<Filling> fillings) {
  std::string text;
  while (true) {
    const Filling *next = nullptr;
    size_t at = page.size();
    for (const Filling &filling : fillings)
      if (size_t found = page.find(filling.first); found < at) {
        at = found;
        next = &filling;
      }
    text += page.take_front(at);
    if (!next)
      return text;
    text += next->second;
    page = page.drop_front(at + next->first.size());
  }
}

std::string tmc::commandText(llvm::ArrayRef<std::string> words) {
  std::string text;
  for (const std::string &word : words) {
    const bool isPlain =
        !word.empty() && llvm::all_of(word, [](char c) {
          return llvm::isAlnum(c) || StringRef("_-./=:,+@%").contains(c);
        });
    text += text.empty() ? "" : " ";
    if (isPlain) {
      text += word;
      continue;
    }
    text += "'";
    for (char c : word)
      text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += "'";
  }
  return text;
}

std::string tmc::madeHtml(const Provenance &made) {
  auto row = [](const char *name, const std::string &text) {
    return text.empty() ? std::string()
                        : std::string("<dt>") + name + "</dt><dd>" +
                              inHtml(text) + "</dd>";
  };
  return "<dl class=\"made\">" + row("command", commandText(made.command)) +
         row("made", (made.version.empty() ? "" : "by tmc " + made.version) +
                         (made.date.empty() ? "" : ", " + made.date)) +
         row("model", made.model) + row("plan", made.plan) + "</dl>";
}
