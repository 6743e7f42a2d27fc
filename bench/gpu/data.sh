# shellcheck shell=bash
# Sourced by emit.sh and run.sh. Random inputs lie in $work, and $python makes them.

data_of() { # root, data of a case: words for the trainer, in examples/data
  local root=$1 name file input
  case $2 in
    *RANDOM=*)
      for input in $2; do
        input=${input#RANDOM=}
        printf ' --data=%s=%s' "${input%%:*}" "$(random_input "$input")"
      done;;
    *GOLDEN=*)
      read -r name <<< "${2#*GOLDEN=}"
      for file in "$root/test/golden/$name".*.npy; do
        input=$(basename "$file" .npy)
        printf ' --data=%s=%s' "${input#"$name".}" "$file"
      done;;
    *) echo "$2";;
  esac
}

random_input() { # NAME:CLASSES:SHAPE, whole numbers, or NAME:normal:SHAPE: the file with such numbers
  local file=${work:-${TMPDIR:-/tmp}}/${1//:/-}.npy
  [ -f "$file" ] || "${python:-python3}" - "$1" "$file" << 'PYTHON'
import array, math, os, random, sys
_, kind, shape = sys.argv[1].split(":")
shape = [int(size) for size in shape.split("x")]
count, draws = math.prod(shape), random.Random(0)
block = min(count, 1 << 20)
if kind == "normal":
    numbers, name = array.array("f", (draws.gauss(0, 1) for _ in range(block))), "<f4"
else:
    numbers, name = array.array("q", (draws.randrange(int(kind)) for _ in range(block))), "<i8"
numbers = numbers * (count // block) + numbers[:count % block]
head = f"{{'descr': '{name}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
head += " " * (-(len(head) + 11) % 64) + "\n"
with open(sys.argv[2] + ".part", "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
    numbers.tofile(file)
os.replace(sys.argv[2] + ".part", sys.argv[2])
PYTHON
  echo "$file"
}
