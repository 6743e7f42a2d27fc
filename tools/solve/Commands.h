// Commands.h - the commands of `tmc-solve`. Each takes main's arguments and
// returns the exit code; `tmc-solve --help` describes them.

#ifndef TMC_TOOLS_SOLVE_COMMANDS_H
#define TMC_TOOLS_SOLVE_COMMANDS_H

namespace tmc::planning {

int solveRemat(int argc, char **argv);
int solveFit(int argc, char **argv);
int solveBound(int argc, char **argv);
int solveOffload(int argc, char **argv);
int solveVerify(int argc, char **argv);
int solvePack(int argc, char **argv);
int generate(int argc, char **argv);

} // namespace tmc::planning

#endif // TMC_TOOLS_SOLVE_COMMANDS_H
