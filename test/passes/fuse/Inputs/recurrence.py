"""A state that each step scales and adds to, from data that are small beside it: h' = exp(d a) h + d b.

    recurrence.py STEPS
"""
import sys

steps = int(sys.argv[1])
STATE, ROW, COLUMN = "tensor<8x64x16xf32>", "tensor<8x64xf32>", "tensor<64x16xf32>"
arguments = [f"%d{t}: {ROW}" for t in range(steps)]
body, results = [], []
state = "%start"
body.append(f"%start = arith.constant dense<0.0> : {STATE}")
for t in range(steps):
    body += [f"%w{t} = nn.broadcast %d{t} to [0, 1] : ({ROW}) -> {STATE}",
             f"%v{t} = nn.broadcast %a to [1, 2] : ({COLUMN}) -> {STATE}",
             f"%p{t} = arith.mulf %w{t}, %v{t} : {STATE}",
             f"%e{t} = math.exp %p{t} : {STATE}",
             f"%k{t} = arith.mulf %e{t}, {state} : {STATE}",
             f"%h{t} = arith.addf %k{t}, %w{t} : {STATE}",
             f"%y{t} = nn.reduce sum %h{t} over [2] : ({STATE}) -> {ROW}"]
    state = f"%h{t}"
    results.append(f"%y{t}")
types = ", ".join([ROW] * steps)
print(f"func.func @recurrence(%a: {COLUMN}, {', '.join(arguments)}) -> ({types}) {{")
print("\n".join("  " + line for line in body))
print(f"  return {', '.join(results)} : {types}\n}}")
