"""Processes of several ranks on this machine."""

import os
import shutil
import socket
import subprocess

import trained
from trained import Run

MPIRUN = shutil.which("mpirun")
OPEN_MPI = ["--allow-run-as-root", "--oversubscribe"] if MPIRUN and "Open MPI" in trained.run([MPIRUN, "--version"])[1] else []


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Ranks:
    """The processes of a world that tmc's own variables describe. `each`: a rank's own arguments of Popen."""

    def __init__(self, commands, each=None):
        address = f"127.0.0.1:{free_port()}"
        self.processes = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **(each[rank] if each else {}),
                             env={**os.environ, "TMC_RANK": str(rank), "TMC_RANKS": str(len(commands)), "TMC_ADDRESS": address})
            for rank, command in enumerate(commands)]

    def wait(self, seconds=300):
        """The largest code, and the texts of all ranks."""
        texts = []
        for process in self.processes:
            try:
                texts.append(process.communicate(timeout=seconds)[0])
            except subprocess.TimeoutExpired:
                self.kill()
                texts.append(process.communicate()[0] + "\nstill ran")
        return max(abs(process.returncode) for process in self.processes), texts

    def kill(self):
        for process in self.processes:
            process.kill()


class RankRun(Run):
    """A run of several ranks by a library."""

    def __init__(self, library, ranks, *args, **kwargs):
        self.library, self.ranks = library, ranks
        super().__init__(*args, **kwargs)

    def call(self, command):
        command = [*command, f"--network={self.library}"]
        if self.library == "mpi":
            return trained.run(["timeout", "300", MPIRUN, *OPEN_MPI, "-n", str(self.ranks), *command])
        code, texts = Ranks([command] * self.ranks).wait()
        return code, "\n".join(texts)


def libraries(step):
    """Those that a step has and that can be started here."""
    return [name for name in ("mpi", "gloo")
            if os.path.exists(os.path.join(step, f"libtmc-network-{name}.so")) and (name != "mpi" or MPIRUN)]
