"""A planner that keeps everything: each instruction by its first recipe, in order."""

import sys

segment_of, first, recipes = [], {}, 0
with open(sys.argv[1]) as problem:
    for line in problem:
        words = line.split()
        fields = dict(word.split("=", 1) for word in words if "=" in word)
        if words[0] == "instruction":
            segment_of.append(fields["segment"])
        elif words[0] == "recipe":
            if "instruction" in fields:
                first.setdefault(int(fields["instruction"]), recipes)
            recipes += 1
for instruction, segment in enumerate(segment_of):
    print(segment, first[instruction])
