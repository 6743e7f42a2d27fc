"""Checks report.html without a browser: page.py KIND ARGUMENT ..."""

import html.parser
import json
import os
import subprocess
import sys


class Page(html.parser.HTMLParser):
    """A page's tags, the texts of its tags, and the data of its script."""

    def __init__(self, path):
        super().__init__()
        self.tags, self.texts, self.inside = [], {}, None
        with open(path) as file:
            text = file.read()
        self.feed(text)
        if "const D = " in text:
            self.data = json.loads(text[text.index("const D = ") + 10:text.index(";\nconst $")])

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.inside = tag
        self.texts.setdefault(tag, []).append("")
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attributes), (tag, attributes)

    def handle_data(self, data):
        if self.inside:
            self.texts[self.inside][-1] += data

    def handle_endtag(self, tag):
        self.inside = None


def said(directory, glob="*"):
    return subprocess.run(["tmc", "explain", directory, "--tensor", glob], stdout=subprocess.PIPE, check=True, text=True).stdout


def explained(directory):
    """The page has what `tmc explain` says of each tensor."""
    data = Page(os.path.join(directory, "report.html")).data
    lines = data["explained"]["lines"]
    assert len(lines) == len(set(lines))
    texts = ["\n".join(lines[k] for k in of) + "\n" for of in data["explained"]["of"] if of]
    heading = "in memory during the whole step and between steps\n"
    decided = [text for text in texts if not text.startswith(heading)]
    always = [text[len(heading):] for text in texts if text.startswith(heading)]
    want = "\n".join(decided) + (("\n" if decided else "") + heading + "".join(always) if always else "")
    assert said(directory) == want
    contents = data["values"]["content"]
    assert all(data["explained"]["of"][content] for content in contents), "a value without a text"
    print("explained: %d decided, %d always there" % (len(decided), len(always)))


def figures(directory):
    """What the charts and the table need: the budget and its neighbours, and what decisions cost."""
    with open(os.path.join(directory, "plan.json")) as file:
        plan = json.load(file)
    with open(os.path.join(directory, "plan-trace.json")) as file:
        trace = json.load(file)
    page = Page(os.path.join(directory, "report.html"))
    data = page.data
    assert data["budget"] == (-1 if plan["budget_bytes"] is None else plan["budget_bytes"])
    assert data["reserved"] == plan["reserved_bytes"]
    paid = sum(data["values"]["paid"]) * 1e-12
    known = sum(gap["paid_ps"] if gap["space"] == "device" else gap["waited_ps"]
                for value in trace["values"] for gap in value["gaps"] if not gap["held"]) * 1e-12
    assert abs(paid - known) < 1e-12 + 1e-9 * known
    # A value is recomputed or moved only where its tensors say so, too.
    made = [0] * len(trace["values"])
    for tensor in trace["tensors"]:
        made[trace["values"][tensor["value"]]["content"]] += 1
    for value, count in zip(trace["values"], made):
        assert count > 1 or all(gap["held"] for gap in value["gaps"]), value["name"]
    facts = page.texts["dd"]
    assert facts[2:] == [plan["made"]["model_fingerprint"], plan["made"]["plan_fingerprint"]], facts
    assert plan["made"]["version"] in facts[1] and plan["made"]["date"] in facts[1]
    print("figures: budget %s, paid %s; command: %s" % (data["budget"], "more than 0" if paid > 0 else 0, facts[0]))


def named(path, name):
    """A page of a model with this name holds it as text alone."""
    page = Page(path)
    assert page.texts["title"][0].startswith(name), page.texts["title"]
    assert "img" not in page.tags and page.tags.count("script") <= 1
    print("named: %d tags" % len(page.tags))


def plain(path, *words):
    """A page without a script: the heads of its sections, and these words among the cells of its tables."""
    page = Page(path)
    assert "script" not in page.tags
    for word in words:
        assert word in page.texts["td"], word
    print("plain: " + ", ".join(page.texts["h2"]))


globals()[sys.argv[1]](*sys.argv[2:])
