// StoryJson.cpp - story.json: compact rows, for programs of ours to read again.

#include "compiler/pipeline/Story.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace tmc;
namespace json = llvm::json;

static constexpr int64_t kStorySchema = 1;

namespace {

/// Calls `f(name, field)` for every plain field, in both directions.
template <typename T, typename F>
void fieldsOf(T &launch, F f) requires
    std::is_same_v<std::remove_const_t<T>, Story::Launch> {
  f("name", launch.name);
  f("where", launch.where);
  f("kind", launch.kind);
  f("recomputes", launch.recomputes);
  f("instance", launch.instance);
  f("cost_ps", launch.costPs);
  f("live_bytes", launch.liveBytes);
  f("workspace_bytes", launch.workspaceBytes);
  f("price", launch.price);
}

template <typename T, typename F>
void fieldsOf(T &gap,
              F f) requires std::is_same_v<std::remove_const_t<T>, Story::Gap> {
  f("from", gap.from);
  f("to", gap.to);
  f("held", gap.held);
  f("over_peak", gap.overPeak);
  f("least_ps", gap.leastPs);
  f("paid_ps", gap.paidPs);
  f("worth_ps", gap.worthPs);
}

template <typename T, typename F>
void fieldsOf(T &value, F f) requires
    std::is_same_v<std::remove_const_t<T>, Story::Value> {
  f("name", value.name);
  f("class", value.valueClass);
  f("bytes", value.bytes);
  f("persistent", value.persistent);
  f("can_remake", value.canRemake);
}

template <typename T, typename F>
void fieldsOf(T &tensor, F f) requires
    std::is_same_v<std::remove_const_t<T>, Story::Tensor> {
  f("value", tensor.value);
  f("begin", tensor.begin);
  f("end", tensor.end);
  f("place_of", tensor.placeOf);
  f("buffer", tensor.buffer);
}

template <typename T, typename F>
void fieldsOf(T &buffer, F f) requires
    std::is_same_v<std::remove_const_t<T>, Story::Buffer> {
  f("name", buffer.name);
  f("class", buffer.bufferClass);
  f("bytes", buffer.bytes);
  f("offset", buffer.offset);
  f("begin", buffer.begin);
  f("end", buffer.end);
  f("persistent", buffer.persistent);
}

template <typename T, typename F>
void fieldsOf(T &segment, F f) requires
    std::is_same_v<std::remove_const_t<T>, Story::Segment> {
  f("name", segment.name);
  f("trips", segment.trips);
  f("begin", segment.begin);
  f("end", segment.end);
}

template <typename T, typename F>
void fieldsOf(T &levers, F f) requires
    std::is_same_v<std::remove_const_t<T>, planning::Levers> {
  f("plain_peak", levers.plainPeak);
  f("in_place_peak", levers.inPlacePeak);
  f("late_update_peak", levers.lateUpdatePeak);
  f("order_peak", levers.orderPeak);
  f("plan_peak", levers.planPeak);
  f("recompute_cost_ps", levers.recomputeCost);
}

template <typename T, typename F>
void fieldsOf(T &story,
              F f) requires std::is_same_v<std::remove_const_t<T>, Story> {
  f("model", story.model);
  f("target", story.target);
  f("budget_bytes", story.budgetBytes);
  f("arena_bytes", story.arenaBytes);
  f("reserved_bytes", story.reservedBytes);
  f("step_s", story.stepSeconds);
  f("unconstrained_s", story.unconstrainedSeconds);
  f("peak_launch", story.peakLaunch);
  f("peak_bytes", story.peakBytes);
}

template <typename T> json::Object written(const T &record) {
  json::Object object;
  fieldsOf(record,
           [&](const char *name, const auto &field) { object[name] = field; });
  return object;
}

json::Array numbers(const std::vector<int32_t> &list) {
  json::Array array;
  for (int32_t each : list)
    array.push_back(each);
  return array;
}

/// Reads fields and remembers whether all were there and of their kind.
class Reader {
public:
  bool ok = true;

  template <typename T> T read(const json::Value &value) {
    T record;
    const json::Object *object = value.getAsObject();
    ok &= object != nullptr;
    if (object)
      fieldsOf(record, [&](const char *name, auto &field) {
        const json::Value *found = object->get(name);
        ok &= found && set(*found, field);
      });
    return record;
  }

  template <typename F>
  void each(const json::Object &object, const char *name, F f) {
    const json::Array *array = object.getArray(name);
    ok &= array != nullptr;
    if (array)
      for (const json::Value &value : *array)
        f(value);
  }

  std::vector<int32_t> numbers(const json::Value &value, const char *name) {
    std::vector<int32_t> list;
    if (const json::Object *object = value.getAsObject())
      each(*object, name, [&](const json::Value &entry) {
        list.push_back(int32_t(entry.getAsInteger().value_or(-1)));
      });
    return list;
  }

private:
  static bool set(const json::Value &value, std::string &field) {
    auto text = value.getAsString();
    field = text ? text->str() : "";
    return text.has_value();
  }
  static bool set(const json::Value &value, bool &field) {
    field = value.getAsBoolean().value_or(false);
    return value.getAsBoolean().has_value();
  }
  static bool set(const json::Value &value, double &field) {
    field = value.getAsNumber().value_or(0);
    return value.getAsNumber().has_value();
  }
  template <typename T>
  requires std::is_integral_v<T>
  static bool set(const json::Value &value, T &field) {
    field = T(value.getAsInteger().value_or(0));
    return value.getAsInteger().has_value();
  }
};

} // namespace

std::string tmc::storyJson(const Story &story) {
  json::Object object = written(story);
  object["schema"] = kStorySchema;
  object["levers"] = written(story.levers);
  auto list = [&](const char *name, const auto &records, auto more) {
    json::Array array;
    for (const auto &record : records) {
      json::Object row = written(record);
      more(record, row);
      array.push_back(std::move(row));
    }
    object[name] = std::move(array);
  };
  auto nothing = [](const auto &, json::Object &) {};
  list("segments", story.segments, nothing);
  list("launches", story.launches,
       [](const Story::Launch &launch, json::Object &row) {
         row["phase"] = int64_t(launch.phase);
         row["reads"] = numbers(launch.reads);
         row["writes"] = numbers(launch.writes);
       });
  list("values", story.values,
       [](const Story::Value &value, json::Object &row) {
         json::Array gaps;
         for (const Story::Gap &gap : value.gaps)
           gaps.push_back(written(gap));
         row["gaps"] = std::move(gaps);
       });
  list("tensors", story.tensors, nothing);
  list("buffers", story.buffers, nothing);
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(object)) << "\n";
  return text;
}

Expected<Story> tmc::readStory(const std::string &text) {
  auto wrong = [](const std::string &why) {
    return Failure::input("the file story.json can't be read: " + why);
  };
  llvm::Expected<json::Value> parsed = json::parse(text);
  if (!parsed)
    return wrong(llvm::toString(parsed.takeError()));
  const json::Object *object = parsed->getAsObject();
  if (!object || object->getInteger("schema") != kStorySchema)
    return wrong("its schema isn't " + std::to_string(kStorySchema));
  Reader reader;
  Story story = reader.read<Story>(*parsed);
  if (const json::Value *levers = object->get("levers"))
    story.levers = reader.read<planning::Levers>(*levers);
  reader.each(*object, "segments", [&](const json::Value &value) {
    story.segments.push_back(reader.read<Story::Segment>(value));
  });
  reader.each(*object, "launches", [&](const json::Value &value) {
    Story::Launch launch = reader.read<Story::Launch>(value);
    if (const json::Object *row = value.getAsObject()) {
      int64_t phase = row->getInteger("phase").value_or(-1);
      reader.ok &= phase >= 0 && phase <= 2;
      launch.phase = Story::Phase(phase);
    }
    launch.reads = reader.numbers(value, "reads");
    launch.writes = reader.numbers(value, "writes");
    story.launches.push_back(std::move(launch));
  });
  reader.each(*object, "values", [&](const json::Value &value) {
    Story::Value record = reader.read<Story::Value>(value);
    if (const json::Object *row = value.getAsObject())
      reader.each(*row, "gaps", [&](const json::Value &gap) {
        record.gaps.push_back(reader.read<Story::Gap>(gap));
      });
    story.values.push_back(std::move(record));
  });
  reader.each(*object, "tensors", [&](const json::Value &value) {
    story.tensors.push_back(reader.read<Story::Tensor>(value));
  });
  reader.each(*object, "buffers", [&](const json::Value &value) {
    story.buffers.push_back(reader.read<Story::Buffer>(value));
  });
  int64_t launches = story.launches.size(), values = story.values.size();
  auto within = [](int64_t index, int64_t size) {
    return index >= 0 && index < size;
  };
  reader.ok &= within(story.peakLaunch, launches);
  for (const Story::Tensor &t : story.tensors)
    reader.ok &= within(t.value, values) && within(t.begin, launches) &&
                 t.end <= launches &&
                 t.placeOf < int64_t(story.tensors.size()) &&
                 t.buffer < int64_t(story.buffers.size());
  for (const Story::Launch &l : story.launches)
    for (const auto *list : {&l.reads, &l.writes})
      for (int32_t v : *list)
        reader.ok &= within(v, values);
  for (const Story::Value &v : story.values)
    for (const Story::Gap &gap : v.gaps)
      reader.ok &= within(gap.from, launches) && gap.to <= launches;
  if (!reader.ok)
    return wrong("a field is missing or out of range");
  return story;
}
