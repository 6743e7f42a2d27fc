"""Runs a command and checks the code it ends with: exits.py CODE COMMAND ..."""

import subprocess
import sys

code = subprocess.run(sys.argv[2:]).returncode
if code != int(sys.argv[1]):
    sys.exit("ended with %d instead of %s: %s" %
             (code, sys.argv[1], " ".join(sys.argv[2:])))
