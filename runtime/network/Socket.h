//===- Socket.h - TCP connections with time limits --------------*- C++ -*-===//
//
// The few calls that Control.cpp makes of the system. Sockets don't block;
// functions with a time limit wait by poll().
//
//===----------------------------------------------------------------------===//
#ifndef TMC_RUNTIME_NETWORK_SOCKET_H
#define TMC_RUNTIME_NETWORK_SOCKET_H

#include "runtime/kernels/Status.h"

#include <string>
#include <string_view>
#include <vector>

namespace tmc {

/// A descriptor that is closed at the end.
class Socket {
public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() { close(); }
  Socket(Socket &&other) noexcept;
  Socket &operator=(Socket &&other) noexcept;

  int get() const { return descriptor_; }
  bool isOpen() const { return descriptor_ >= 0; }
  void close();

private:
  int descriptor_ = -1;
};

/// Listens at `port`, or at one that the system chooses where it is 0. `host`
/// is the name by which peers connect: for the loopback's names no other host
/// can. Code::World.
Status listenAt(const std::string &host, int &port, Socket &socket);

/// Lets this process have `count` more descriptors, as far as the system
/// allows.
void allowDescriptors(int count);

/// The next connection to a listening socket; not open: there is none.
Socket acceptFrom(const Socket &listening);

/// Connects to the first of `hosts` that answers, and tries all again until
/// `seconds` have passed. Code::World.
Status connectTo(const std::vector<std::string> &hosts, int port,
                 double seconds, Socket &socket);

/// Sends all bytes within `seconds`. False: the connection is lost.
bool sendAll(const Socket &socket, std::string_view bytes, double seconds);

enum class Received : char { Some, Nothing, Closed };
/// Appends the bytes that are there to `bytes`, at most 64 KiB.
Received receiveSome(const Socket &socket, std::string &bytes);

/// The addresses of a connection's two ends, without ports: "10.0.0.3".
std::string ownAddress(const Socket &socket);
std::string peerAddress(const Socket &socket);

/// The addresses of this host's interfaces that are up, but for the loopback;
/// that alone where there is no other.
std::vector<std::string> hostAddresses();

std::string hostName();

/// The time of a clock that only goes forward.
double monotonicSeconds();

} // namespace tmc

#endif // TMC_RUNTIME_NETWORK_SOCKET_H
