#include "compiler/pipeline/Explain.h"

#include "compiler/emit/Emit.h"
#include "compiler/pipeline/PlanReport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/GlobPattern.h"

using namespace tmc;

static std::string fromPs(int64_t ps) {
  return readableSeconds(double(ps) * 1e-12);
}

static bool isRecomputed(const Story::Value &value) {
  return llvm::any_of(value.gaps, [](const Story::Gap &g) { return !g.held; });
}

std::string tmc::decisionOf(const Story &story, int32_t value,
                            const std::vector<int32_t> &tensors) {
  const Story::Value &told = story.values[value];
  if (told.persistent)
    return "persistent";
  if (isRecomputed(told))
    return "recomputed";
  if (!told.gaps.empty())
    return "kept";
  for (int32_t t : tensors)
    if (story.tensors[t].placeOf >= 0)
      return "in place";
  int32_t longest = 0;
  for (int32_t t : tensors)
    longest = std::max(longest, story.tensors[t].end - story.tensors[t].begin);
  return longest <= 2 ? "short-lived" : "kept";
}

/// "launch 41, h.3.mlp.c_fc (model.py:12), forward".
static std::string launchText(const Story &story, int32_t index) {
  if (size_t(index) >= story.launches.size())
    return "the end of the step";
  const Story::Launch &launch = story.launches[index];
  return "launch " + std::to_string(index + 1) + ", " + launch.name +
         (launch.where.empty() ? "" : " (" + launch.where + ")") + ", " +
         nameOf(launch.phase);
}

namespace {

/// Tells of one value.
class Teller {
public:
  Teller(const Story &story, int32_t index, const std::vector<int32_t> &tensors)
      : story(story), index(index), value(story.values[index]),
        tensors(tensors) {}

  std::string tell() {
    text = value.name + "\n";
    line(value.valueClass + ", " + readableBytes(value.bytes) + ": " +
         decisionOf(story, index, tensors));
    for (int32_t t : tensors)
      tellTensor(story.tensors[t]);
    for (const Story::Gap &gap : value.gaps)
      tellGap(gap);
    if (value.gaps.empty())
      line(value.canRemake
               ? "no other launch runs between its uses: there is nothing to "
                 "gain"
               : "no kernel can make it again: what makes it updates or adds "
                 "in place, or starts a sum");
    return text;
  }

private:
  const Story &story;
  int32_t index;
  const Story::Value &value;
  const std::vector<int32_t> &tensors;
  std::string text;

  void line(const std::string &words, int depth = 1) {
    text += std::string(size_t(depth) * 2, ' ') + words + "\n";
  }

  void tellTensor(const Story::Tensor &tensor) {
    const Story::Launch &maker = story.launches[tensor.begin];
    line(std::string(maker.recomputes ? "made again by " : "made by ") +
         launchText(story, tensor.begin) + ", " + fromPs(maker.costPs));
    std::string where = "alive to launch " + std::to_string(tensor.end);
    if (tensor.begin <= story.peakLaunch && story.peakLaunch < tensor.end)
      where += ", at the peak too";
    if (tensor.placeOf >= 0)
      where += ", in the place of " +
               story.values[story.tensors[tensor.placeOf].value].name;
    if (tensor.buffer >= 0 && story.buffers[tensor.buffer].offset >= 0)
      where += ", at +" + readableBytes(story.buffers[tensor.buffer].offset);
    line(where, 2);
  }

  void tellGap(const Story::Gap &gap) {
    line("between " + launchText(story, gap.from));
    line("and     " + launchText(story, gap.to));
    std::string span = std::to_string(gap.to - gap.from - 1) + " launches" +
                       (gap.overPeak ? ", the peak among them" : "");
    std::string least = fromPs(gap.leastPs);
    std::string worth = fromPs(gap.worthPs);
    if (gap.held) {
      line("kept: holds " + readableBytes(value.bytes) + " over " + span, 2);
      if (gap.worthPs < 0)
        line("the budget leaves room for everything; making it again would "
             "cost at least " +
                 least,
             2);
      else if (gap.worthPs == 0)
        line("memory has no price there; making it again would cost at least " +
                 least,
             2);
      else if (gap.worthPs <= gap.leastPs)
        line("these bytes are worth " + worth +
                 " there, less than making it again would cost: at least " +
                 least,
             2);
      else
        line("these bytes are worth " + worth +
                 " there; making it again costs " + least +
                 " or more, with what it is made from, and no cheaper plan "
                 "without it was found",
             2);
      return;
    }
    line("made again: frees " + readableBytes(value.bytes) + " over " + span,
         2);
    line("pays " + fromPs(gap.paidPs) + " (the cheapest way costs " + least +
             ")" +
             (gap.worthPs >= 0 ? "; these bytes are worth " + worth + " there"
                               : ""),
         2);
  }
};

} // namespace

std::string tmc::explainAll(const Story &story, int count) {
  std::vector<std::vector<int32_t>> tensors = story.tensorsOf();
  std::vector<int32_t> order;
  for (size_t v = 0; v < story.values.size(); ++v)
    if (!story.values[v].gaps.empty())
      order.push_back(int32_t(v));
  auto worth = [&](int32_t v) {
    int64_t sum = 0;
    for (const Story::Gap &gap : story.values[v].gaps)
      sum += std::max<int64_t>(gap.worthPs, 0);
    return sum;
  };
  llvm::stable_sort(order, [&](int32_t a, int32_t b) {
    return std::pair(story.values[a].bytes, worth(a)) >
           std::pair(story.values[b].bytes, worth(b));
  });
  int64_t again = llvm::count_if(
      order, [&](int32_t v) { return isRecomputed(story.values[v]); });
  std::string text = std::to_string(order.size()) +
                     " tensors could be made again, " + std::to_string(again) +
                     " are; the peak of " + readableBytes(story.peakBytes) +
                     " is at " + launchText(story, story.peakLaunch) + "\n\n";
  auto row = [&](const std::string &bytes, const std::string &decision,
                 const std::string &price, const std::string &cost,
                 const std::string &name) {
    char line[512];
    snprintf(line, sizeof line, "%10s  %-11s %11s %11s  ", bytes.c_str(),
             decision.c_str(), price.c_str(), cost.c_str());
    text += line + name + "\n";
  };
  row("bytes", "decision", "worth", "cost", "tensor");
  for (int32_t v : order) {
    if (count-- <= 0)
      break;
    const Story::Value &value = story.values[v];
    int64_t cost = 0, priced = -1;
    for (const Story::Gap &gap : value.gaps) {
      cost += gap.held ? gap.leastPs : gap.paidPs;
      if (gap.worthPs >= 0)
        priced = std::max<int64_t>(priced, 0) + gap.worthPs;
    }
    row(readableBytes(value.bytes), decisionOf(story, v, tensors[v]),
        priced < 0 ? "-" : fromPs(priced), fromPs(cost), value.name);
  }
  if (count < 0)
    text += "...\n";
  text += "\nworth: what the proof pays for the bytes over the gaps between "
          "uses; cost: of making the\ntensor again, at least, or as paid. "
          "--tensor NAME or GLOB tells more.\n";
  return text;
}

Expected<std::string> tmc::explainTensors(const Story &story,
                                          const std::string &glob) {
  llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(glob);
  if (!pattern)
    return Failure::usage("--tensor=" + glob + ": " +
                          llvm::toString(pattern.takeError()));
  bool isPlain = glob.find_first_of("*?[") == std::string::npos;
  std::vector<std::vector<int32_t>> tensors = story.tensorsOf();
  std::string text, persistent;
  for (size_t v = 0; v < story.values.size(); ++v) {
    llvm::StringRef name = story.values[v].name;
    bool matches = isPlain ? name == glob || name.starts_with(glob + " (") ||
                                 name.starts_with(glob + "#")
                           : pattern->match(name);
    if (!matches)
      continue;
    if (story.values[v].persistent)
      persistent += name.str() + ": " + story.values[v].valueClass + ", " +
                    readableBytes(story.values[v].bytes) + "\n";
    else
      text += (text.empty() ? "" : "\n") +
              Teller(story, int32_t(v), tensors[v]).tell();
  }
  if (!persistent.empty())
    text += (text.empty() ? "" : "\n") +
            std::string("in memory during the whole step and between steps\n") +
            persistent;
  if (!text.empty())
    return text;
  Failure failure = Failure::input("no tensor matches '" + glob + "'");
  std::vector<std::pair<unsigned, llvm::StringRef>> near;
  for (const Story::Value &value : story.values)
    near.push_back({llvm::StringRef(value.name).edit_distance(glob, true, 40),
                    value.name});
  llvm::stable_sort(
      near, [](const auto &a, const auto &b) { return a.first < b.first; });
  std::string names;
  for (size_t i = 0; i < near.size() && i < 4; ++i)
    names += (i ? ", " : "") + near[i].second.str();
  return std::move(failure).note("there are " + names + ", ...");
}
