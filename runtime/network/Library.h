//===- Library.h - opens a library of the network ---------------*- C++ -*-===//
//
// A step for one device needs no library. One for several comes with
// libtmc-network-mpi.so, libtmc-network-gloo.so or both, in its own folder.
// They are compiled where the step is compiled (Mpi.cpp, Gloo.cpp), since the
// kinds of MPI differ in their binary interfaces, and are opened by name.
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_NETWORK_LIBRARY_H
#define TMC_RUNTIME_NETWORK_LIBRARY_H

#include "runtime/network/Network.h"

#include <memory>
#include <string>

namespace tmc {

/// Opens the library `name` ("mpi", "gloo") in `folder`, and by it a network.
/// A world of one rank needs no library: its name may be "". Code::World if the
/// library can't be opened or has another version, else the library's errors.
Status openNetwork(const std::string &name, const std::string &folder,
                   const NetworkStart &start,
                   std::unique_ptr<Network> &network);

} // namespace tmc

#endif // TMC_RUNTIME_NETWORK_LIBRARY_H
