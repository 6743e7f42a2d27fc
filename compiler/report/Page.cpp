#include "compiler/report/Page.h"

#include "compiler/report/PlotAxis.h"
#include "compiler/support/Escape.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace tmc;
using llvm::StringRef;

static constexpr char kPlainPage[] =
#include "compiler/report/ReportBeside.inc"
    ;

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
    const bool isPlain = !word.empty() && llvm::all_of(word, [](char c) {
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

HtmlTable::HtmlTable(std::string label, std::vector<Column> columns)
    : label(std::move(label)), columns(std::move(columns)) {}

void HtmlTable::row(const std::vector<std::string> &cells) {
  std::string text = "<tr>";
  for (size_t i = 0; i < cells.size(); ++i)
    text += std::string("<td") +
            (columns[i].isNumber ? " class=\"n\""
             : i                 ? ""
                                 : " class=\"name\"") +
            ">" + inHtml(cells[i]) + "</td>";
  rows.push_back(text + "</tr>\n");
}

std::string HtmlTable::part(size_t begin, size_t end) const {
  std::string text = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
                     "aria-label=\"" +
                     inHtml(label) + (begin ? ", the rest" : "") +
                     "\"><table><thead><tr>";
  for (const Column &column : columns)
    text += std::string("<th") + (column.isNumber ? " class=\"n\"" : "") + ">" +
            inHtml(column.name) + "</th>";
  text += "</tr></thead><tbody>\n";
  for (size_t i = begin; i < end; ++i)
    text += rows[i];
  return text + "</tbody></table></div>";
}

std::string HtmlTable::html() const {
  constexpr size_t kShown = 40;
  const size_t shown = rows.size() <= kShown + 5 ? rows.size() : kShown;
  std::string text = part(0, shown);
  if (shown < rows.size())
    text += "<details><summary>the other " +
            std::to_string(rows.size() - shown) + " rows</summary>" +
            part(shown, rows.size()) + "</details>";
  return text;
}

std::string tmc::section(const std::string &title, const std::string &text,
                         const std::string &content) {
  return "<section>\n<h2>" + inHtml(title) + "</h2>\n<p>" + inHtml(text) +
         "</p>\n<div class=\"panel\">" + content + "</div>\n</section>\n";
}

std::string tmc::plainPage(const std::string &title,
                           const std::string &subtitle,
                           const std::string &body) {
  return filled(kPlainPage, {{"<!--TITLE-->", inHtml(title)},
                             {"<!--SUBTITLE-->", inHtml(subtitle)},
                             {"<!--BODY-->", body}});
}

std::string tmc::linesSvg(const std::string &label, const std::string &xName,
                          const std::string &yName,
                          llvm::ArrayRef<Line> lines) {
  constexpr double kLeft = 70, kRight = 710, kTop = 12, kBottom = 240;
  PlotAxis x{0, 0, kLeft, kRight}, y{0, 0, kBottom, kTop};
  bool isFirst = true;
  for (const Line &line : lines)
    for (auto [at, value] : line.points) {
      x.low = isFirst ? at : std::min(x.low, at);
      x.high = isFirst ? at : std::max(x.high, at);
      y.low = isFirst ? value : std::min(y.low, value);
      y.high = isFirst ? value : std::max(y.high, value);
      isFirst = false;
    }
  y.high += (y.high - y.low) * .06;
  std::string text =
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" +
      inHtml(label) +
      ", as a picture\"><svg xmlns=\"http://www.w3.org/2000/svg\" "
      "viewBox=\"0 0 720 290\" class=\"curve lines\" role=\"img\" "
      "aria-label=\"" +
      inHtml(label) + "\">";
  double step = y.step(5);
  for (double v = y.first(step); v <= y.high; v += step)
    text += llvm::formatv(
        "<line class=\"grid\" x1=\"{0:F1}\" x2=\"{1:F1}\" y1=\"{2:F1}\" "
        "y2=\"{2:F1}\"/><text x=\"{3:F1}\" y=\"{4:F1}\" "
        "text-anchor=\"end\">{5}</text>",
        kLeft, kRight, y.at(v), kLeft - 6, y.at(v) + 4, tick(v));
  step = x.step(7);
  for (double v = x.first(step); v <= x.high; v += step)
    text += llvm::formatv(
        "<text x=\"{0:F1}\" y=\"258\" text-anchor=\"middle\">{1}</text>",
        x.at(v), tick(v));
  text += "<text x=\"390\" y=\"280\" text-anchor=\"middle\">" + inHtml(xName) +
          "</text><text x=\"14\" y=\"126\" text-anchor=\"middle\" "
          "transform=\"rotate(-90 14 126)\">" +
          inHtml(yName) + "</text>\n";
  for (const Line &line : lines) {
    text += std::string("<polyline class=\"") +
            (line.isDashed ? "second" : "first") + "\" points=\"";
    for (auto [at, value] : line.points)
      text += llvm::formatv("{0:F1},{1:F1} ", x.at(at), y.at(value));
    text += "\"/>\n";
  }
  return text + "</svg></div>";
}
