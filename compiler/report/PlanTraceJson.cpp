// PlanTraceJson.cpp - plan-trace.json: compact rows, which only our own
// programs read.

#include "compiler/report/PlanTrace.h"

#include "compiler/support/Escape.h"
#include "compiler/support/Json.h"

using namespace tmc;
namespace json = llvm::json;

static constexpr int64_t kTraceSchema = 7;

/// A value of the trace is a row of a dozen numbers; a step of a hundred
/// thousand launches has some millions of rows.
static constexpr JsonLimits kTraceLimits{.maxDepth = 16, .maxValues = 64 << 20};

namespace {

/// Calls `f(name, field)` for every plain field, for reading and for writing.
template <typename T, typename F>
void fieldsOf(T &launch, F f) requires
    std::is_same_v<std::remove_const_t<T>, PlanTrace::Launch> {
  f("name", launch.name);
  f("where", launch.where);
  f("kind", launch.kind);
  f("engine", launch.engine);
  f("other", launch.other);
  f("workspace_space", launch.workspaceSpace);
  f("recomputes", launch.recomputes);
  f("instance", launch.instance);
  f("cost_ps", launch.costPs);
  f("live_bytes", launch.liveBytes);
  f("workspace_bytes", launch.workspaceBytes);
  f("price", launch.price);
}

template <typename T, typename F>
void fieldsOf(T &gap, F f) requires
    std::is_same_v<std::remove_const_t<T>, PlanTrace::Gap> {
  f("from", gap.from);
  f("to", gap.to);
  f("held", gap.held);
  f("over_peak", gap.overPeak);
  f("space", gap.space);
  f("least_ps", gap.leastPs);
  f("move_ps", gap.movePs);
  f("break_ps", gap.breakPs);
  f("paid_ps", gap.paidPs);
  f("waited_ps", gap.waitedPs);
  f("worth_ps", gap.worthPs);
}

template <typename T, typename F>
void fieldsOf(T &value, F f) requires
    std::is_same_v<std::remove_const_t<T>, PlanTrace::Value> {
  f("name", value.name);
  f("class", value.valueClass);
  f("bytes", value.bytes);
  f("persistent", value.persistent);
  f("can_remake", value.canRemake);
  f("space", value.space);
  f("content", value.content);
  f("type", value.type);
  f("why", value.why);
}

template <typename T, typename F>
void fieldsOf(T &products, F f) requires
    std::is_same_v<std::remove_const_t<T>, PlanTrace::Products> {
  f("name", products.name);
  f("count", products.count);
}

template <typename T, typename F>
void fieldsOf(T &tensor, F f) requires
    std::is_same_v<std::remove_const_t<T>, PlanTrace::Tensor> {
  f("value", tensor.value);
  f("begin", tensor.begin);
  f("end", tensor.end);
  f("place_of", tensor.placeOf);
  f("buffer", tensor.buffer);
}

template <typename T, typename F>
void fieldsOf(T &buffer, F f) requires
    std::is_same_v<std::remove_const_t<T>, PlanTrace::Buffer> {
  f("name", buffer.name);
  f("class", buffer.bufferClass);
  f("bytes", buffer.bytes);
  f("space", buffer.space);
  f("offset", buffer.offset);
  f("begin", buffer.begin);
  f("end", buffer.end);
  f("persistent", buffer.persistent);
}

template <typename T, typename F>
void fieldsOf(T &segment, F f) requires
    std::is_same_v<std::remove_const_t<T>, PlanTrace::Segment> {
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
  f("recomputed_peak", levers.recomputedPeak);
  f("plan_peak", levers.planPeak);
  f("recompute_cost_ps", levers.recomputeCost);
  f("moves_cost_ps", levers.movesCost);
  f("activations_bytes", levers.activations.bytes);
  f("activations_cost_ps", levers.activations.cost);
  f("optimizer_bytes", levers.optimizer.bytes);
  f("optimizer_cost_ps", levers.optimizer.cost);
  f("parameters_bytes", levers.parameters.bytes);
  f("parameters_cost_ps", levers.parameters.cost);
}

template <typename T, typename F>
void fieldsOf(T &trace,
              F f) requires std::is_same_v<std::remove_const_t<T>, PlanTrace> {
  f("model", trace.model);
  f("target", trace.target);
  f("precision", trace.precision);
  f("budget_bytes", trace.budgetBytes);
  f("arena_bytes", trace.arenaBytes);
  f("reserved_bytes", trace.reservedBytes);
  f("step_s", trace.stepSeconds);
  f("peak_launch", trace.peakLaunch);
  f("peak_bytes", trace.peakBytes);
}

template <typename T> json::Value jsonOf(const T &field) { return field; }
json::Value jsonOf(SpaceKind field) { return nameOf(field); }
json::Value jsonOf(EngineKind field) { return nameOf(field); }
json::Value jsonOf(const PerSpace<int64_t> &field) {
  json::Object object;
  for (auto [space, bytes] : field)
    object[space.name] = bytes;
  return object;
}

template <typename T> json::Object written(const T &record) {
  json::Object object;
  fieldsOf(record, [&](const char *name, const auto &field) {
    object[name] = jsonOf(field);
  });
  return object;
}

template <typename T> json::Array numbers(const std::vector<T> &list) {
  json::Array array;
  for (T each : list)
    array.push_back(each);
  return array;
}

/// Reads fields; `ok` is false once one was missing or of another kind.
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

  template <typename T = int32_t>
  std::vector<T> numbers(const json::Value &value, const char *name) {
    std::vector<T> list;
    if (const json::Object *object = value.getAsObject())
      each(*object, name, [&](const json::Value &entry) {
        list.push_back(T(entry.getAsInteger().value_or(-1)));
      });
    return list;
  }

private:
  static bool set(const json::Value &value, std::string &field) {
    auto text = value.getAsString();
    field = text ? text->str() : "";
    return text && nameFault(field).empty();
  }
  static bool set(const json::Value &value, SpaceKind &field) {
    const SpaceInfo *space = findSpace(value.getAsString().value_or(""));
    field = space ? space->kind : SpaceKind();
    return space;
  }
  static bool set(const json::Value &value, EngineKind &field) {
    const EngineInfo *engine = findEngine(value.getAsString().value_or(""));
    field = engine ? engine->kind : EngineKind::Compute;
    return engine;
  }
  static bool set(const json::Value &value, PerSpace<int64_t> &field) {
    const json::Object *object = value.getAsObject();
    for (auto [space, bytes] : field) {
      const json::Value *found = object ? object->get(space.name) : nullptr;
      if (!found || !set(*found, bytes))
        return false;
    }
    return true;
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

std::string tmc::planTraceJson(const PlanTrace &trace) {
  json::Object object = written(trace);
  object["schema"] = kTraceSchema;
  object["levers"] = written(trace.levers);
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
  list("products", trace.products, nothing);
  list("exceptions", trace.exceptions, nothing);
  list("segments", trace.segments,
       [](const PlanTrace::Segment &segment, json::Object &row) {
         row["trip_ps"] = numbers(segment.tripPs);
       });
  list("launches", trace.launches,
       [](const PlanTrace::Launch &launch, json::Object &row) {
         row["phase"] = int64_t(launch.phase);
         row["reads"] = numbers(launch.reads);
         row["writes"] = numbers(launch.writes);
         row["begin_ps"] = numbers(launch.beginPs);
         row["end_ps"] = numbers(launch.endPs);
       });
  list("values", trace.values,
       [](const PlanTrace::Value &value, json::Object &row) {
         json::Array gaps;
         for (const PlanTrace::Gap &gap : value.gaps)
           gaps.push_back(written(gap));
         row["gaps"] = std::move(gaps);
       });
  list("tensors", trace.tensors, nothing);
  list("buffers", trace.buffers, nothing);
  return jsonText(std::move(object));
}

Expected<PlanTrace> tmc::readPlanTrace(const std::string &text) {
  auto wrong = [](const std::string &why) {
    return Failure::input("the file plan-trace.json can't be read: " + why);
  };
  Expected<json::Value> parsed = parseJson(text, kTraceLimits);
  if (!parsed)
    return wrong("it " + parsed.failure().message);
  const json::Object *object = parsed->getAsObject();
  if (!object || object->getInteger("schema") != kTraceSchema)
    return wrong("its schema isn't " + std::to_string(kTraceSchema));
  Reader reader;
  PlanTrace trace = reader.read<PlanTrace>(*parsed);
  if (const json::Value *levers = object->get("levers"))
    trace.levers = reader.read<planning::Levers>(*levers);
  for (auto [name, list] : {std::pair("products", &trace.products),
                            {"exceptions", &trace.exceptions}})
    reader.each(*object, name, [&, to = list](const json::Value &value) {
      to->push_back(reader.read<PlanTrace::Products>(value));
    });
  reader.each(*object, "segments", [&](const json::Value &value) {
    trace.segments.push_back(reader.read<PlanTrace::Segment>(value));
    trace.segments.back().tripPs = reader.numbers<int64_t>(value, "trip_ps");
  });
  reader.each(*object, "launches", [&](const json::Value &value) {
    PlanTrace::Launch launch = reader.read<PlanTrace::Launch>(value);
    if (const json::Object *row = value.getAsObject()) {
      int64_t phase = row->getInteger("phase").value_or(-1);
      reader.ok &= phase >= 0 && phase <= 2;
      launch.phase = PlanTrace::Phase(phase);
    }
    launch.reads = reader.numbers(value, "reads");
    launch.writes = reader.numbers(value, "writes");
    launch.beginPs = reader.numbers<int64_t>(value, "begin_ps");
    launch.endPs = reader.numbers<int64_t>(value, "end_ps");
    trace.launches.push_back(std::move(launch));
  });
  reader.each(*object, "values", [&](const json::Value &value) {
    PlanTrace::Value record = reader.read<PlanTrace::Value>(value);
    if (const json::Object *row = value.getAsObject())
      reader.each(*row, "gaps", [&](const json::Value &gap) {
        record.gaps.push_back(reader.read<PlanTrace::Gap>(gap));
      });
    trace.values.push_back(std::move(record));
  });
  reader.each(*object, "tensors", [&](const json::Value &value) {
    trace.tensors.push_back(reader.read<PlanTrace::Tensor>(value));
  });
  reader.each(*object, "buffers", [&](const json::Value &value) {
    trace.buffers.push_back(reader.read<PlanTrace::Buffer>(value));
  });
  int64_t launches = trace.launches.size(), values = trace.values.size();
  auto within = [](int64_t index, int64_t size) {
    return index >= 0 && index < size;
  };
  reader.ok &= within(trace.peakLaunch, launches);
  for (const PlanTrace::Tensor &t : trace.tensors)
    reader.ok &= within(t.value, values) && within(t.begin, launches) &&
                 within(t.end, launches + 1) &&
                 t.placeOf < int64_t(trace.tensors.size()) &&
                 t.buffer < int64_t(trace.buffers.size());
  // Each launch belongs to a segment, and has a time in each of its trips.
  int32_t laid = 0;
  for (const PlanTrace::Segment &s : trace.segments) {
    reader.ok &= s.begin == laid && s.begin <= s.end && s.end <= launches &&
                 s.tripPs.size() >= 1 && s.tripPs.size() <= 3;
    laid = s.end;
    for (int32_t l = s.begin; reader.ok && l < s.end; ++l)
      reader.ok &= trace.launches[l].beginPs.size() == s.tripPs.size() &&
                   trace.launches[l].endPs.size() == s.tripPs.size() &&
                   trace.launches[l].other < launches &&
                   !(trace.launches[l].isDone() && trace.launches[l].other < 0);
  }
  reader.ok &= laid == launches;
  for (const PlanTrace::Launch &l : trace.launches)
    for (const auto *list : {&l.reads, &l.writes})
      for (int32_t v : *list)
        reader.ok &= within(v, values);
  for (const PlanTrace::Value &v : trace.values)
    reader.ok &= within(v.content, values);
  for (const PlanTrace::Value &v : trace.values)
    for (const PlanTrace::Gap &gap : v.gaps)
      reader.ok &= within(gap.from, launches) && within(gap.to, launches + 1);
  if (!reader.ok)
    return wrong("a field is missing, out of range or no name");
  return trace;
}
