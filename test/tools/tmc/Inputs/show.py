"""Checks what tmc writes for other viewers: show.py KIND FILE [FILE]."""

import json
import pickle
import sys


def snapshot(path):
    """A memory snapshot: places never overlap, and what remains persists, in each space."""
    with open(path, "rb") as file:
        data = pickle.load(file)
    assert [s["device"] for s in data["segments"]] == list(range(len(data["device_traces"])))
    for segment, events in zip(data["segments"], data["device_traces"]):
        space(segment, events)
    assert len(data["device_traces"][0]) > 20
    print("snapshot: arena of %s bytes" % ", ".join(str(s["total_size"]) for s in data["segments"]))


def space(segment, events):
    assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"]
    start, end = segment["address"], segment["address"] + segment["total_size"]
    live = {b["address"]: b["size"] for b in segment["blocks"]
            if b["state"] == "active_allocated"}
    last = 0
    for event in events:
        at, size = event["addr"], event["size"]
        assert event["time_us"] >= last
        last = event["time_us"]
        assert start <= at and at + size <= end
        assert event["frames"][0]["name"]
        if event["action"] == "alloc":
            for other, held in live.items():
                assert at + size <= other or other + held <= at, event
            live[at] = size
        elif event["action"] == "free_completed":
            assert live.pop(at) == size


def trace(path, plan):
    """A trace: launches follow one another and take the predicted time."""
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    with open(plan) as file:
        plan = json.load(file)
    launches = [e for e in events if e["ph"] == "X"]
    counters = [e for e in events if e["ph"] == "C"]
    at = 0
    for event in launches:
        assert abs(event["ts"] - at) < 1e-3, (event, at)
        at += event["dur"]
    assert abs(at * 1e-6 - plan["step_time_s"]) < 1e-9 + 1e-6 * at
    assert max(sum(e["args"].values()) for e in counters) == plan["live_peak_bytes"]
    assert len(launches) == len(counters)
    print("trace: %d again" % sum("made" in e["args"] for e in launches))


LANES = ["compute", "d2h", "h2d", "file-read", "file-write", "host", "network"]


def lanes(path, plan):
    """A trace with moves: a lane's work comes one after the other and adds up to what the plan says, and
    the kernels' lane is theirs and their waits; the peaks of all spaces are in the counters."""
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    with open(plan) as file:
        plan = json.load(file)
    spaces = plan["spaces"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    busy = {}
    waits = 0
    for lane, name in names.items():
        assert LANES[lane] == name
        free = 0
        for event in (e for e in events if e["ph"] == "X" and e["tid"] == lane):
            assert event["ts"] >= free - 1e-3, (event, free)
            free = event["ts"] + event["dur"]
            if event["cat"] == "wait":
                assert lane == 0
                waits += event["dur"]
            else:
                busy[name] = busy.get(name, 0) + event["dur"]
    near = lambda us, s: abs(us * 1e-6 - s) < 1e-9
    for name, seconds in spaces["busy_s"].items():
        assert near(busy.get(name, 0), seconds), (name, busy.get(name), seconds)
    assert near(waits, sum(spaces["waits_s"].values()))
    end = max(e["ts"] + e["dur"] for e in events if e["ph"] == "X")
    assert end * 1e-6 <= plan["step_time_s"] + 1e-9
    most = lambda name: max(sum(e["args"].values()) for e in events if e["ph"] == "C" and e["name"] == name)
    # Of a loop's body what is carried is shown over all of it.
    if plan["micro_batches"] == 1:
        assert most("bytes alive") == plan["live_peak_bytes"]
        for space in "host", "file":
            if spaces[space]["live_peak_bytes"]:
                assert most("bytes alive, " + space) == spaces[space]["live_peak_bytes"], space
    print("lanes: %s" % ", ".join(sorted(busy)))


def moved(path, plan):
    """What each lever bought adds up to the plan's peak and time."""
    with open(path) as file:
        trace = json.load(file)
    with open(plan) as file:
        plan = json.load(file)
    levers = plan["levers"]
    bought = [levers[name + "_bytes"] for name in
              ("in_place", "order", "recompute", "moves")]
    assert trace["levers"]["plain_peak"] - sum(bought) == plan["live_peak_bytes"], bought
    seconds = levers["recompute_s"] + levers["moves_s"]
    assert abs(plan["unconstrained_time_s"] + seconds - plan["step_time_s"]) < 1e-9
    classes = [levers[name + "_moved_bytes"] for name in ("activations", "optimizer", "parameters")]
    assert all(each >= 0 for each in bought[3:] + classes)
    print("moved: %s" % " ".join(str(each) for each in bought[3:] + classes))


def curve(path):
    """A curve: more memory, less time; the bound stays below."""
    with open(path) as file:
        lines = [line.split(",") for line in file.read().split()]
    rows = [dict(zip(lines[0], line)) for line in lines[1:]]
    assert len(rows) > 3
    for one, two in zip(rows, rows[1:]):
        assert int(one["budget_bytes"]) < int(two["budget_bytes"])
        assert float(one["step_time_s"]) >= float(two["step_time_s"])
    for row in rows:
        assert int(row["arena_bytes"]) <= int(row["budget_bytes"])
        if row["lower_bound_pct"]:
            assert float(row["lower_bound_pct"]) <= float(row["overhead_pct"]) + 1e-6
    assert float(rows[-1]["overhead_pct"]) == 0
    print("curve: from %s bytes" % rows[0]["budget_bytes"])


def plan_trace(path, plan):
    """A plan trace: its tensors add up to the plan's peak."""
    with open(path) as file:
        trace = json.load(file)
    with open(plan) as file:
        plan = json.load(file)
    peak = trace["peak_launch"]
    live = trace["launches"][peak]["workspace_bytes"]
    for tensor in trace["tensors"]:
        begin = tensor["begin"] + (tensor["place_of"] >= 0)
        if begin <= peak < tensor["end"]:
            live += trace["values"][tensor["value"]]["bytes"]
    assert live == plan["live_peak_bytes"], live
    paid = sum(launch["cost_ps"] for launch in trace["launches"])
    assert abs(paid * 1e-12 - plan["step_time_s"]) < 1e-9
    assert plan["peak"]["launch"] == peak
    levers = plan["levers"]
    assert plan["live_peak_bytes"] == trace["levers"]["plain_peak"] - (
        levers["in_place_bytes"] + levers["order_bytes"] + levers["recompute_bytes"])
    print("plan trace: %d launches" % len(trace["launches"]))


def budgets(plan):
    """The two budgets that a plan names, a line each."""
    with open(plan) as file:
        plan = json.load(file)
    print(plan["smallest_found_bytes"], plan["impossible_below_bytes"] - 1)


def precision(plan):
    """Types: the tensors of all of them are the peak without its workspace."""
    with open(plan) as file:
        plan = json.load(file)
    shown = plan["precision"]
    assert sum(shown["peak_by_type"].values()) == (
        plan["live_peak_bytes"] - plan["peak_by_class"].get("workspace", 0))
    products = shown["products"]
    assert sum(shown["exceptions"].values()) <= sum(products.values())
    print("precision: %s, products %s" % (
        shown["asked"], " ".join("%s %d" % each for each in sorted(products.items()))))


def copies(auto, kept, cast):
    """Plans with all memory, the form left open, pinned to either; prints the smallest budgets
    with casts and with copies."""
    plans = []
    for path in (auto, kept, cast):
        with open(path) as file:
            plans.append(json.load(file))
    auto, kept, cast = plans
    size = lambda plan: plan["precision"]["kept_copies_bytes"]
    assert size(auto) == size(kept) > 0 == size(cast)
    assert auto["step_time_s"] == kept["step_time_s"] < cast["step_time_s"]
    least = lambda plan: plan["smallest_found_bytes"]
    assert least(auto) == least(cast) < least(kept)
    assert auto["impossible_below_bytes"] <= cast["impossible_below_bytes"]
    print(least(cast), least(kept), sep="\n")
    print("faster with copies, and smaller without them")


def keeps(plan):
    with open(plan) as file:
        print("keeps", json.load(file)["precision"]["kept_copies_bytes"])


def curve_ends(points, plan):
    """A curve over budgets of what a plan with all memory ends."""
    with open(points) as file:
        rows = [line.split(",") for line in file.read().splitlines()[1:]]
    with open(plan) as file:
        plan = json.load(file)
    seconds = [float(row[2]) for row in rows]
    assert seconds == sorted(seconds, reverse=True), seconds
    assert int(rows[0][0]) == plan["smallest_found_bytes"]
    assert abs(seconds[-1] / plan["step_time_s"] - 1) < 1e-6
    assert abs(float(rows[-1][3])) < 1e-6
    print("falls from the smallest budget with casts to the time with copies")


def page(path):
    """A report: one file that asks for nothing."""
    with open(path) as file:
        text = file.read()
    for word in ("src=", "href=", "@import", "fetch(", "import("):
        assert word not in text, word
    assert text.count("http") == text.count("http://www.w3.org/2000/svg")
    data = json.loads(text[text.index("const D = ") + 10:text.index(";\nconst $")])
    launches = data["launches"]
    sizes = {len(column) for name, column in launches.items() if name != "clock"}
    assert len(sizes) == 1 and len(launches["clock"]) == sizes.pop() + 1
    assert launches["clock"] == sorted(launches["clock"])
    tensors, spaces = data["tensors"], data["values"]["space"]
    placed = {spaces[value] for value, offset in zip(tensors["value"], tensors["offset"]) if offset >= 0}
    print("page: %d KiB, engines %s, arenas %s" % (len(text) // 1024, sorted(set(launches["engine"])), sorted(placed)))


globals()[sys.argv[1]](*sys.argv[2:])
