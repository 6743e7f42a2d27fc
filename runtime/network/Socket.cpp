//===- Socket.cpp - TCP connections with time limits ----------------------===//

#include "runtime/network/Socket.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace tmc {

namespace {

/// Between two rounds of attempts to connect.
constexpr auto kRetryTime = std::chrono::milliseconds(50);
/// One attempt: a host that doesn't answer must not use up the time of others.
constexpr double kAttemptSeconds = 3;
constexpr int kMostWaiting = 1024; // connections that aren't accepted yet

Status failure(const std::string &what, int error) {
  return {Code::World, what + ": " + std::strerror(error)};
}

bool isLoopback(const std::string &host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

/// Waits until `events` are there; false: not within `seconds`.
bool waitFor(int descriptor, short events, double seconds) {
  const double end = monotonicSeconds() + seconds;
  for (double left = seconds; left > 0; left = end - monotonicSeconds()) {
    pollfd entry = {descriptor, events, 0};
    const int ready = poll(&entry, 1, int(std::max(1.0, left * 1e3)));
    if (ready > 0)
      return true;
    if (ready < 0 && errno != EINTR)
      return false;
  }
  return false;
}

Socket newSocket(int family) {
  Socket socket(
      ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  // Frames are short, and someone waits for each.
  (void)setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

int portOf(const sockaddr_storage &address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6 &>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in &>(address).sin_port);
}

/// As inet_ntop prints it; an IPv4 address within IPv6 as the former.
std::string textOf(const sockaddr *address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET)
    (void)inet_ntop(AF_INET,
                    &reinterpret_cast<const sockaddr_in *>(address)->sin_addr,
                    text, sizeof text);
  else if (address->sa_family == AF_INET6)
    (void)inet_ntop(AF_INET6,
                    &reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr,
                    text, sizeof text);
  const std::string whole = text, mapped = "::ffff:";
  return whole.rfind(mapped, 0) == 0 && whole.find('.') != std::string::npos
             ? whole.substr(mapped.size())
             : whole;
}

/// Listens at all addresses of the family, or at the loopback alone.
int listenBy(int family, bool isLocal, int port, Socket &socket) {
  socket = newSocket(family);
  if (!socket.isOpen())
    return errno;
  const int on = 1, off = 0;
  (void)setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_storage address = {};
  address.ss_family = sa_family_t(family);
  socklen_t bytes = sizeof(sockaddr_in);
  if (family == AF_INET6) {
    (void)setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    auto &six = reinterpret_cast<sockaddr_in6 &>(address);
    six.sin6_addr = isLocal ? in6addr_loopback : in6addr_any;
    six.sin6_port = htons(uint16_t(port));
    bytes = sizeof six;
  } else {
    auto &four = reinterpret_cast<sockaddr_in &>(address);
    four.sin_addr.s_addr = htonl(isLocal ? INADDR_LOOPBACK : INADDR_ANY);
    four.sin_port = htons(uint16_t(port));
  }
  if (bind(socket.get(), reinterpret_cast<sockaddr *>(&address), bytes) ||
      listen(socket.get(), kMostWaiting))
    return errno;
  return 0;
}

/// One attempt. The result is 0 or an errno.
int tryConnect(const addrinfo &to, double seconds, Socket &socket) {
  socket = newSocket(to.ai_family);
  if (!socket.isOpen())
    return errno;
  if (connect(socket.get(), to.ai_addr, to.ai_addrlen) == 0)
    return 0;
  if (errno != EINPROGRESS)
    return errno;
  if (!waitFor(socket.get(), POLLOUT, seconds))
    return ETIMEDOUT;
  int error = 0;
  socklen_t bytes = sizeof error;
  (void)getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
  return error;
}

/// Tries all addresses of a host. "": connected.
std::string tryHost(const std::string &host, int port, double end,
                    Socket &socket) {
  addrinfo hints = {}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int fault =
      getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (fault)
    return gai_strerror(fault);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list,
                                                                 freeaddrinfo);
  std::string why = "no address";
  for (const addrinfo *at = list; at; at = at->ai_next) {
    const double left = std::min(kAttemptSeconds, end - monotonicSeconds());
    const int error = tryConnect(*at, std::max(left, 1e-3), socket);
    if (!error)
      return "";
    why = std::strerror(error);
  }
  socket.close();
  return why;
}

} // namespace

double monotonicSeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Socket::Socket(Socket &&other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket &Socket::operator=(Socket &&other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

void Socket::close() {
  if (descriptor_ >= 0)
    (void)::close(descriptor_);
  descriptor_ = -1;
}

Status listenAt(const std::string &host, int &port, Socket &socket) {
  // "localhost" and 127.0.0.1 are of IPv4. A host without IPv6 has no socket of
  // it.
  const bool isLocal = isLoopback(host);
  int error = EAFNOSUPPORT;
  if (!isLocal || host == "::1")
    error = listenBy(AF_INET6, isLocal, port, socket);
  if (error == EAFNOSUPPORT || error == EADDRNOTAVAIL)
    error = listenBy(AF_INET, isLocal, port, socket);
  if (error)
    return failure("can't listen at port " + std::to_string(port), error);
  sockaddr_storage address = {};
  socklen_t bytes = sizeof address;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr *>(&address), &bytes))
    return failure("can't listen", errno);
  port = portOf(address);
  return Status::ok();
}

void allowDescriptors(int count) {
  // A process also has files, libraries and engines open.
  constexpr rlim_t kOthers = 512;
  rlimit limit = {};
  const rlim_t wanted = rlim_t(count) + kOthers;
  if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= wanted)
    return;
  limit.rlim_cur = std::min(limit.rlim_max, wanted);
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

Socket acceptFrom(const Socket &listening) {
  Socket socket(
      accept4(listening.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const int on = 1;
  if (socket.isOpen())
    (void)setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

Status connectTo(const std::vector<std::string> &hosts, int port,
                 double seconds, Socket &socket) {
  const double end = monotonicSeconds() + seconds;
  std::string why = "no address";
  do {
    for (const std::string &host : hosts) {
      why = tryHost(host, port, end, socket);
      if (why.empty())
        return Status::ok();
    }
    std::this_thread::sleep_for(kRetryTime);
  } while (monotonicSeconds() < end);
  return {Code::World, "can't connect to rank 0 at '" +
                           (hosts.empty() ? "" : hosts.front()) + "' port " +
                           std::to_string(port) + " within " +
                           std::to_string(int64_t(seconds)) + " s: " + why};
}

bool sendAll(const Socket &socket, std::string_view bytes, double seconds) {
  const double end = monotonicSeconds() + seconds;
  while (!bytes.empty()) {
    const ssize_t sent =
        send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(size_t(sent));
      continue;
    }
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
      return false;
    if (!waitFor(socket.get(), POLLOUT, end - monotonicSeconds()))
      return false;
  }
  return true;
}

Received receiveSome(const Socket &socket, std::string &bytes) {
  constexpr size_t kMostBytes = 64 << 10;
  char part[4096];
  for (size_t done = 0; done < kMostBytes;) {
    const ssize_t count = recv(socket.get(), part, sizeof part, 0);
    if (count > 0) {
      bytes.append(part, size_t(count));
      done += size_t(count);
      continue;
    }
    if (count < 0 && errno == EINTR)
      continue;
    if (done > 0) // A close after these bytes is seen next time.
      return Received::Some;
    return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)
               ? Received::Nothing
               : Received::Closed;
  }
  return Received::Some;
}

std::string ownAddress(const Socket &socket) {
  sockaddr_storage address = {};
  socklen_t bytes = sizeof address;
  auto *at = reinterpret_cast<sockaddr *>(&address);
  return getsockname(socket.get(), at, &bytes) ? "" : textOf(at);
}

std::string peerAddress(const Socket &socket) {
  sockaddr_storage address = {};
  socklen_t bytes = sizeof address;
  auto *at = reinterpret_cast<sockaddr *>(&address);
  return getpeername(socket.get(), at, &bytes) ? "" : textOf(at);
}

std::vector<std::string> hostAddresses() {
  ifaddrs *list = nullptr;
  std::vector<std::string> four, six;
  if (getifaddrs(&list) == 0) {
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list,
                                                                 freeifaddrs);
    for (const ifaddrs *at = list; at; at = at->ifa_next) {
      if (!at->ifa_addr || !(at->ifa_flags & IFF_UP) ||
          (at->ifa_flags & IFF_LOOPBACK))
        continue;
      if (at->ifa_addr->sa_family == AF_INET)
        four.push_back(textOf(at->ifa_addr));
      // An address of a link says nothing without the link's name.
      if (at->ifa_addr->sa_family == AF_INET6 &&
          !IN6_IS_ADDR_LINKLOCAL(
              &reinterpret_cast<const sockaddr_in6 *>(at->ifa_addr)->sin6_addr))
        six.push_back(textOf(at->ifa_addr));
    }
  }
  four.insert(four.end(), six.begin(), six.end());
  if (four.empty())
    four.push_back("127.0.0.1");
  return four;
}

std::string hostName() {
  char name[256] = "";
  return gethostname(name, sizeof name - 1) ? "" : name;
}

} // namespace tmc
