"""The rule on the order of operations finds planted faults, and no others: sequence.py TOOLS."""

import sys

sys.path.insert(0, sys.argv[1])
import sequence

HEADER = """
Value add(OpBuilder &b, Location loc, Value x, Value y);
int64_t sizeOf(OpBuilder &b, Value x);
struct Rows {
  OpBuilder &b;
  Value spread(Value x) const;
  int64_t count() const;
};
"""
# Expressions, and whether each breaks the rule.
CASES = [
    ("add(b, loc, add(b, loc, x, y), add(b, loc, y, x))", True),
    ("add(b, loc, ExpOp::create(b, loc, x), LogOp::create(b, loc, x))", True),
    ("add(b, loc, rows.spread(x), rows.spread(y))", True),
    ("MulFOp::create(b, loc, twice(x), add(b, loc, x, y))", True),
    ("b.replaceOpWithNewOp<MulFOp>(op, add(b, loc, x, y), twice(x))", True),
    # Deeper in a call that is right itself.
    ("twice(add(b, loc, twice(x), twice(y)))", True),
    ("add(b, loc, x,\n      add(b, loc, x, twice(y)))", False),
    ("f({add(b, loc, x, y), add(b, loc, y, x)}, z)", False),
    ("f(sizeOf(b, x), sizeOf(b, y), rows.count())", False),
    ('f("add(b, loc, x, y)", add(b, loc, x, y)) // add(b, loc, y, x)', False),
    ("join([&](Value x) { return twice(x); }, [&](Value y) { return twice(y); })", False),
]

for expression, is_fault in CASES:
    text = """
void f(OpBuilder &b, Location loc, Value x, Value y, Rows rows) {
  auto twice = [&](Value v) { return add(b, loc, v, v); };
  return %s;
}
""" % expression
    found = sequence.faults([("dialects/Rows.h", HEADER), ("dialects/F.cpp", text)])
    assert bool(found) == is_fault, (expression, found)
    assert not found or found[0].startswith("dialects/F.cpp:4: "), found
# A test's functions are the tests' own.
call = "void g() { f(made(1), made(2)); }\n"
made = ("test/unit/Made.h", "Value made(OpBuilder &b);\n")
assert sequence.faults([made, ("test/unit/G.cpp", call)])
assert not sequence.faults([made, ("passes/G.cpp", call)])
print("planted faults are found")
