#!/bin/bash
# Runs a command that CMake wrote for g++ with another compiler that knows g++'s flags:
#
#   with.sh COMPILER [WORD ...] -- g++ ARGUMENT ...
#
# The words come after the compiler. A precompiled header that is being written is removed
# first: clang would read it where it finds it.
words=()
while [ "$1" != -- ]; do
  words+=("$1")
  shift
done
shift 2
before=
for word; do
  if [ "$before" = -o ]; then
    case $word in *.gch) rm -f "$word" ;; esac
  fi
  before=$word
done
exec "${words[@]}" "$@"
