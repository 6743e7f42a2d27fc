#!/bin/sh
# Runs a command whose messages go to a file, and are printed only where it fails:
#
#   logged.sh LOG COMMAND...
log=$1
shift
"$@" > "$log" 2>&1 && exit
code=$?
cat "$log" >&2
exit $code
