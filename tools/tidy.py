"""Runs clang-tidy with the checks of .clang-tidy; the standard library only.

    python3 tools/tidy.py --build build             what a change touches
    python3 tools/tidy.py --build build --all       every source file
    python3 tools/tidy.py --build build FILE ...

A change is what isn't committed and what came after the commit that the clone has in
common with origin/main; in a fresh clone of main, what its last commits touched. At
most 16 files are read then, the newest change first: one takes 5 to 15 s. Exit status
1: a check found something; 74: no clang-tidy-22.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MOST_FILES = 16
RECENT_COMMITS = 20


def git(*words):
    done = subprocess.run(["git", "-C", ROOT, *words], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    return done.stdout.split() if done.returncode == 0 else []


def changed():
    """Paths from the root, the newest change first, each once."""
    base = git("merge-base", "HEAD", "origin/main")
    commits = git("rev-list", "-%d" % RECENT_COMMITS, base[0] + "..HEAD") if base else []
    if not commits:
        commits = git("rev-list", "-%d" % RECENT_COMMITS, "HEAD")
    paths = git("diff", "--name-only", "HEAD")
    for commit in commits:
        paths += git("diff-tree", "--no-commit-id", "--name-only", "-r", "-m",
                     "--first-parent", commit)
    return list(dict.fromkeys(paths))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    tool = shutil.which("clang-tidy-22")
    if not tool:
        print("tidy: no clang-tidy-22")
        return 74
    with open(os.path.join(args.build, "compile_commands.json")) as text:
        compiled = {os.path.realpath(os.path.join(entry["directory"], entry["file"]))
                    for entry in json.load(text)
                    if entry["file"].endswith(".cpp")}
    ours = [path for path in compiled
            if path.startswith(ROOT + os.sep)
            and not path.startswith(os.path.realpath(args.build) + os.sep)]
    if args.all:
        files = sorted(ours)
    else:
        asked = args.files or changed()
        paths = [os.path.realpath(path if args.files else os.path.join(ROOT, path))
                 for path in asked]
        files = [path for path in paths if path in compiled]
        if not args.files:
            files = files[:MOST_FILES]

    removed = set()

    def read(path):
        # Files are compiled by g++, whose flags clang doesn't all know: it names those
        # that it refuses, and is asked again without them.
        while True:
            flags = sorted(removed)
            # Warnings are the compiler's business (-w), and so are its headers. clang's
            # own precompiled header is read, which was made so (TmcHeaders.cmake).
            done = subprocess.run(
                [tool, "-p", args.build, "--quiet", "--extra-arg=-w", "--extra-arg=-U__DEPRECATED",
                 *["--removed-arg=" + flag for flag in flags], path],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT)
            refused = set(re.findall(r"unknown argument:? '([^']+)'", done.stdout))
            if refused <= set(flags):
                return path, done
            removed.update(refused)

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for path, done in pool.map(read, files):
            if done.returncode != 0:
                bad += 1
                print("%s\n%s" % (os.path.relpath(path, ROOT), done.stdout.strip()),
                      flush=True)
    print("tidy: %d of %d files are clean" % (len(files) - bad, len(files)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
