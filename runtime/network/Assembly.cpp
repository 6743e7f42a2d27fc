//===- Assembly.cpp - the ranks come together -----------------------------===//

#include "runtime/network/Assembly.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tmc {

namespace {

/// A stranger that says nothing is sent away after this time.
constexpr double kHelloSeconds = 10;
/// More connections that haven't said who they are aren't accepted.
constexpr size_t kMostStrangers = 256;
constexpr size_t kMostTextBytes = 256;
/// Longer than rank 0 waits, so that its verdict arrives.
constexpr double kVerdictSeconds = 10;
constexpr double kLingerSeconds = 1;

Status world(const std::string &why) { return {Code::World, why}; }

struct Hello {
  int rank = 0, ranks = 0;
  Peer peer;
  std::vector<SharedFact> facts;
};

std::string helloFrame(const AssemblySettings &settings) {
  FrameWriter writer(FrameKind::Hello);
  writer.number32(uint32_t(settings.place.rank))
      .number32(uint32_t(settings.place.ranks))
      .number64(uint64_t(getpid()))
      .text(hostName())
      .number32(uint32_t(settings.facts.size()));
  for (const auto &[name, value] : settings.facts)
    writer.text(name).text(value.substr(0, kMostTextBytes));
  return writer.finish();
}

/// False: the body is malformed.
bool readHello(const std::string &body, Hello &hello) {
  FrameReader reader(body);
  const uint32_t rank = reader.number32(), ranks = reader.number32();
  const uint64_t process = reader.number64();
  hello.peer.host = reader.text();
  const uint32_t count = reader.number32();
  for (uint32_t i = 0; i < count && reader.isSound(); ++i) {
    std::string name = reader.text();
    hello.facts.emplace_back(std::move(name), reader.text());
    if (hello.facts.back().first.size() > kMostTextBytes ||
        hello.facts.back().second.size() > kMostTextBytes)
      return false;
  }
  if (!reader.isDone() || ranks > uint32_t(kMostRanks) || rank >= ranks ||
      process > uint64_t(INT32_MAX) || hello.peer.host.size() > kMostTextBytes)
    return false;
  hello.rank = int(rank);
  hello.ranks = int(ranks);
  hello.peer.process = int64_t(process);
  return true;
}

/// The fact that differs, as a sentence; "": none.
std::string difference(const std::vector<SharedFact> &facts, int rank,
                       const Hello &hello) {
  const std::string name = nameOf(rank, hello.peer);
  if (hello.facts.size() != facts.size())
    return name + " runs another trainer than rank 0";
  for (size_t i = 0; i < facts.size(); ++i) {
    if (hello.facts[i].first != facts[i].first)
      return name + " runs another trainer than rank 0";
    const std::string own = facts[i].second.substr(0, kMostTextBytes);
    if (hello.facts[i].second != own)
      return name + " has another " + facts[i].first + " than rank 0: '" +
             hello.facts[i].second + "' and '" + own + "'";
  }
  return "";
}

std::string secondsText(double seconds) {
  return std::to_string(int64_t(seconds)) + " s";
}

/// Rank 0 before the start.
class Host {
public:
  Host(const AssemblySettings &settings, Assembly &assembly)
      : settings_(settings), assembly_(assembly),
        hellos_(size_t(settings.place.ranks)) {}

  Status run() {
    if (Status s = listen(); !s)
      return s;
    const double end = monotonicSeconds() + settings_.startSeconds;
    while (missing() && monotonicSeconds() < end)
      turn(end);
    const Status verdict = judge();
    if (verdict)
      return welcome();
    for (Connection &each : assembly_.connections)
      if (each.socket.isOpen())
        (void)sendAll(each.socket, greeting() + verdictFrame(verdict),
                      kSendSeconds);
    linger(assembly_.connections, kLingerSeconds);
    return verdict;
  }

private:
  struct Stranger {
    Connection connection;
    double end = 0;
  };

  Status listen() {
    assembly_.connections.resize(hellos_.size());
    assembly_.peers.resize(hellos_.size());
    assembly_.peers[0] = {hostName(), int64_t(getpid())};
    allowDescriptors(settings_.place.ranks + int(kMostStrangers));
    port_ = settings_.place.port;
    host_ = settings_.place.host;
    if (Status s = listenAt(host_, port_, listening_); !s)
      return world(s.message() + "; TMC_ADDRESS=HOST:PORT names another one");
    std::vector<std::string> hosts = hostAddresses();
    if (!host_.empty() || !settings_.shareAddress)
      return Status::ok();
    host_ = hosts.front();
    return settings_.shareAddress(hosts, port_);
  }

  int missing() const {
    int count = 0;
    for (size_t rank = 1; rank < hellos_.size(); ++rank)
      count += !assembly_.connections[rank].socket.isOpen();
    return count;
  }

  /// Waits for something to come, and takes it.
  void turn(double end) {
    const double now = monotonicSeconds();
    std::vector<pollfd> entries;
    for (const Stranger &each : strangers_) {
      entries.push_back({each.connection.socket.get(), POLLIN, 0});
      end = std::min(end, each.end);
    }
    if (strangers_.size() < kMostStrangers)
      entries.push_back({listening_.get(), POLLIN, 0});
    (void)poll(entries.data(), nfds_t(entries.size()),
               int(std::max(1.0, (end - now) * 1e3)));
    for (Socket next = acceptFrom(listening_);
         next.isOpen() && strangers_.size() < kMostStrangers;
         next = acceptFrom(listening_)) {
      strangers_.push_back({});
      strangers_.back().connection.socket = std::move(next);
      strangers_.back().end = monotonicSeconds() + kHelloSeconds;
    }
    std::erase_if(strangers_, [&](Stranger &each) { return !hear(each); });
  }

  /// False: it is no stranger any more, or it was sent away.
  bool hear(Stranger &stranger) {
    Connection &connection = stranger.connection;
    std::string bytes;
    const Received received = receiveSome(connection.socket, bytes);
    connection.buffer.append(bytes.data(), bytes.size());
    Frame frame;
    if (connection.buffer.next(frame)) {
      take(connection, frame);
      return false;
    }
    if (!connection.buffer.fault().empty())
      refuse(connection, "it " + connection.buffer.fault());
    else if (received == Received::Closed)
      refuse(connection, "it closed the connection");
    else if (monotonicSeconds() >= stranger.end)
      refuse(connection, "it didn't say who it is");
    else
      return true;
    return false;
  }

  void take(Connection &connection, const Frame &frame) {
    Hello hello;
    if (frame.kind != FrameKind::Hello || !readHello(frame.body, hello))
      return refuse(connection, "its first message is malformed");
    const std::string name = nameOf(hello.rank, hello.peer);
    if (hello.ranks != settings_.place.ranks)
      return refuse(connection, name + " is one of " +
                                    std::to_string(hello.ranks) +
                                    " ranks, and rank 0 one of " +
                                    std::to_string(settings_.place.ranks));
    const size_t rank = size_t(hello.rank);
    if (rank == 0)
      return refuse(connection, name + " is a second rank 0");
    if (assembly_.connections[rank].socket.isOpen())
      return refuse(connection, name + " comes after " +
                                    nameOf(hello.rank, hellos_[rank].peer));
    connection.buffer.allow(kMostFrameBytes);
    assembly_.connections[rank] = std::move(connection);
    assembly_.peers[rank] = hello.peer;
    hellos_[rank] = std::move(hello);
  }

  void refuse(Connection &connection, const std::string &why) {
    refused_ =
        "; '" + peerAddress(connection.socket) + "' was sent away: " + why;
    const std::string bytes =
        greeting() +
        FrameWriter(FrameKind::Refused).text("rank 0: " + why).finish();
    (void)sendAll(connection.socket, bytes, kSendSeconds);
  }

  Status judge() const {
    for (size_t rank = 1; rank < hellos_.size(); ++rank) {
      if (!assembly_.connections[rank].socket.isOpen())
        continue;
      const std::string why =
          difference(settings_.facts, int(rank), hellos_[rank]);
      if (!why.empty())
        return {Code::Usage, why};
    }
    if (!missing())
      return Status::ok();
    std::string names;
    constexpr int kMostShown = 8;
    int shown = 0;
    for (size_t rank = 1; rank < hellos_.size() && shown < kMostShown; ++rank)
      if (!assembly_.connections[rank].socket.isOpen())
        names += (shown++ ? ", " : "") + std::to_string(rank);
    return world("rank " + names + (missing() > shown ? ", ..." : "") + " of " +
                 std::to_string(hellos_.size()) + " didn't come to '" + host_ +
                 "' port " + std::to_string(port_) + " within " +
                 secondsText(settings_.startSeconds) + refused_);
  }

  Status welcome() {
    FrameWriter writer(FrameKind::Welcome);
    writer.number32(uint32_t(assembly_.peers.size()));
    for (const Peer &peer : assembly_.peers)
      writer.text(peer.host).number64(uint64_t(peer.process));
    const std::string bytes = greeting() + writer.finish();
    for (size_t rank = 1; rank < hellos_.size(); ++rank) {
      const Socket &socket = assembly_.connections[rank].socket;
      // The loopback's address is of no use to ranks on other hosts.
      if (assembly_.address.empty() ||
          assembly_.address.rfind("127.", 0) == 0 || assembly_.address == "::1")
        assembly_.address = ownAddress(socket);
      // A rank that is gone by now is found by its connection.
      (void)sendAll(socket, bytes, kSendSeconds);
    }
    return Status::ok();
  }

  const AssemblySettings &settings_;
  Assembly &assembly_;
  std::vector<Hello> hellos_; // by rank
  std::vector<Stranger> strangers_;
  Socket listening_;
  std::string host_, refused_;
  int port_ = 0;
};

/// The first frame of a connection. Code::World: it closed, or its bytes aren't
/// ours, or nothing came within `seconds`.
Status firstFrame(Connection &connection, double seconds, Frame &frame) {
  const double end = monotonicSeconds() + seconds;
  while (!connection.buffer.next(frame)) {
    if (!connection.buffer.fault().empty())
      return world("the listener there " + connection.buffer.fault());
    const double left = end - monotonicSeconds();
    if (left <= 0)
      return world("no answer within " + secondsText(seconds));
    pollfd entry = {connection.socket.get(), POLLIN, 0};
    (void)poll(&entry, 1, int(std::max(1.0, left * 1e3)));
    std::string bytes;
    if (receiveSome(connection.socket, bytes) == Received::Closed)
      return world("the connection was closed");
    connection.buffer.append(bytes.data(), bytes.size());
  }
  return Status::ok();
}

Status readWelcome(const std::string &body, int ranks,
                   std::vector<Peer> &peers) {
  FrameReader reader(body);
  const uint32_t count = reader.number32();
  for (uint32_t i = 0; i < count && reader.isSound(); ++i) {
    Peer peer;
    peer.host = reader.text();
    peer.process = int64_t(reader.number64());
    peers.push_back(std::move(peer));
  }
  return reader.isDone() && peers.size() == size_t(ranks)
             ? Status::ok()
             : world("rank 0's answer is malformed");
}

/// Says hello to one address. `isOther`: it isn't rank 0 that listens there.
Status greet(const AssemblySettings &settings, Assembly &assembly,
             bool &isOther) {
  Connection &connection = assembly.connections[0];
  isOther = true;
  if (!sendAll(connection.socket, greeting() + helloFrame(settings),
               kSendSeconds))
    return world("the connection was closed");
  connection.buffer = FrameBuffer(kMostFrameBytes);
  Frame frame;
  if (Status s = firstFrame(connection, settings.startSeconds + kVerdictSeconds,
                            frame);
      !s)
    return s;
  isOther = false;
  if (frame.kind == FrameKind::Verdict)
    return readVerdict(frame.body);
  if (frame.kind == FrameKind::Refused)
    return world(FrameReader(frame.body).text());
  if (frame.kind != FrameKind::Welcome)
    return world("rank 0's answer is malformed");
  return readWelcome(frame.body, settings.place.ranks, assembly.peers);
}

Status join(const AssemblySettings &settings, Assembly &assembly) {
  std::vector<std::string> hosts = {settings.place.host};
  int port = settings.place.port;
  if (settings.place.host.empty() && settings.shareAddress)
    if (Status s = settings.shareAddress(hosts, port); !s)
      return s;
  assembly.connections.resize(1);
  Connection &connection = assembly.connections[0];
  const double end = monotonicSeconds() + settings.startSeconds;
  Status failed = world("rank 0 has no address");
  while (!hosts.empty()) {
    if (Status s =
            connectTo(hosts, port, end - monotonicSeconds(), connection.socket);
        !s)
      return s;
    assembly.address = ownAddress(connection.socket);
    const std::string at = peerAddress(connection.socket);
    bool isOther = false;
    if (failed = greet(settings, assembly, isOther); failed || !isOther)
      return failed;
    failed = world("rank 0 isn't at '" + hosts.front() + "' port " +
                   std::to_string(port) + ": " + failed.message());
    // The next address may be the right one.
    if (std::erase(hosts, at) == 0)
      hosts.erase(hosts.begin());
  }
  return failed;
}

} // namespace

std::string verdictFrame(const Status &status) {
  return FrameWriter(FrameKind::Verdict)
      .number32(uint32_t(status.code()))
      .text(status.message())
      .finish();
}

Status readVerdict(const std::string &body) {
  FrameReader reader(body);
  const uint32_t code = reader.number32();
  const std::string sentence = reader.text();
  if (!reader.isDone())
    return world("rank 0's answer is malformed");
  return {code == uint32_t(Code::Usage) ? Code::Usage : Code::World, sentence};
}

void linger(std::vector<Connection> &connections, double seconds) {
  const double end = monotonicSeconds() + seconds;
  for (Connection &each : connections)
    if (each.socket.isOpen())
      (void)shutdown(each.socket.get(), SHUT_WR);
  for (;;) {
    std::vector<pollfd> entries;
    for (Connection &each : connections)
      if (each.socket.isOpen())
        entries.push_back({each.socket.get(), POLLIN, 0});
    const double left = end - monotonicSeconds();
    if (entries.empty() || left <= 0)
      return;
    (void)poll(entries.data(), nfds_t(entries.size()),
               int(std::max(1.0, left * 1e3)));
    std::string ignored;
    for (Connection &each : connections)
      if (each.socket.isOpen() &&
          receiveSome(each.socket, ignored) == Received::Closed)
        each.socket.close();
  }
}

Status assemble(const AssemblySettings &settings, Assembly &assembly) {
  assembly = {};
  if (settings.place.ranks == 1) {
    assembly.connections.resize(1);
    assembly.peers = {{hostName(), int64_t(getpid())}};
    return Status::ok();
  }
  return settings.place.rank == 0 ? Host(settings, assembly).run()
                                  : join(settings, assembly);
}

} // namespace tmc
