"""Writes the man pages of tmc and its commands from their help: man.py TMC HELP2MAN DIR."""

import os
import re
import subprocess
import sys

TMC, HELP2MAN, DIRECTORY = sys.argv[1:]


def page(version, command, summary, others):
    """tmc.1 or tmc-COMMAND.1. `others`: the names of the other pages."""
    name = "-".join(["tmc", *command])
    include = os.path.join(DIRECTORY, name + ".h2m")
    with open(include, "w") as file:
        file.write("[SEE ALSO]\n" + ",\n".join(".BR %s (1)" % other for other in others) + "\n")
    # help2man runs its word by a shell.
    text = subprocess.run(
        [HELP2MAN, "--no-info", "--no-discard-stderr", "--version-string=" + version, "--name=" + summary,
         "--include=" + include, " ".join(["'%s'" % TMC.replace("'", "'\\''"), *command])],
        check=True, stdout=subprocess.PIPE, text=True, env=dict(os.environ, LC_ALL="C")).stdout
    os.remove(include)
    text = re.sub(r'^\.TH \S+', ".TH " + name.upper(), text, count=1, flags=re.M)
    text = re.sub(r"^\.SH NAME\n.*", lambda _: ".SH NAME\n%s \\- %s" % (name, summary), text, count=1, flags=re.M)
    text = re.sub(r"^\.SH DESCRIPTION\nusage: (.*)\n", r".SH SYNOPSIS\n\1\n.SH DESCRIPTION\n", text, flags=re.M)
    with open(os.path.join(DIRECTORY, name + ".1"), "w") as file:
        file.write(text)


os.makedirs(DIRECTORY, exist_ok=True)
said = subprocess.run([TMC, "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
version = subprocess.run([TMC, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout.split(" (")[0].strip()
commands = re.findall(r"^  tmc (\w+).*?  +(\S.*)$", said, re.M)
names = ["tmc"] + ["tmc-" + each for each, _ in commands]
for words, summary in [((), said.splitlines()[0].partition(" - ")[2])] + [((each,), what) for each, what in commands]:
    page(version, words, summary, [name for name in names if name != "-".join(["tmc", *words])])
