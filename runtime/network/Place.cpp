//===- Place.cpp - which rank a process is --------------------------------===//

#include "runtime/network/Place.h"

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>

namespace tmc {

namespace {

/// The variables of one launcher; null: it has none.
struct Source {
  const char *launcher, *rank, *ranks, *localRank, *localRanks;
};
/// Each process has its own values of these.
constexpr Source kLaunchers[] = {
    {"TMC_RANK", "TMC_RANK", "TMC_RANKS", "TMC_LOCAL_RANK", "TMC_LOCAL_RANKS"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"Hydra", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"PMIx", "PMIX_RANK", nullptr, nullptr, nullptr},
};
/// These may be of a process that started the launcher.
constexpr Source kOuter[] = {
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr},
    {"Kubernetes", "JOB_COMPLETION_INDEX", nullptr, nullptr, nullptr},
};

/// torchrun's agent listens at MASTER_PORT.
constexpr int kPortsAfterMaster = 1;
/// Jobs of Slurm share hosts, so their ports differ by the job's number.
constexpr uint64_t kFirstSlurmPort = 20000, kSlurmPorts = 10000;
constexpr int kMostPort = 65535;

Status usage(const std::string &why) { return {Code::Usage, why}; }

std::string shown(const char *name, const std::string &value) {
  return std::string(name) + "='" + value + "'";
}

bool readNumber(const std::string &text, uint64_t &value) {
  value = 0;
  bool isGood = !text.empty();
  for (const char c : text)
    isGood = isGood && c >= '0' && c <= '9' &&
             !__builtin_mul_overflow(value, uint64_t(10), &value) &&
             !__builtin_add_overflow(value, uint64_t(c - '0'), &value);
  return isGood;
}

/// A variable that is set; an empty one counts as unset.
std::optional<std::string> valueOf(const Lookup &lookup, const char *name) {
  const char *value = name ? lookup(name) : nullptr;
  if (!value || !*value)
    return std::nullopt;
  return value;
}

/// A fact, with the variable that it came from.
struct Fact {
  const char *name = nullptr;
  int value = 0;

  /// Reads the variable, which must agree with the ones read before.
  Status read(const Lookup &lookup, const char *variable) {
    const std::optional<std::string> text = valueOf(lookup, variable);
    if (!text)
      return Status::ok();
    uint64_t number = 0;
    if (!readNumber(*text, number) || number > kMostRanks)
      return usage(shown(variable, *text) + " is no number of 0 to " +
                   std::to_string(kMostRanks));
    if (name && value != int(number))
      return usage(shown(name, std::to_string(value)) + " contradicts " +
                   shown(variable, *text));
    if (!name)
      *this = {variable, int(number)};
    return Status::ok();
  }
};

struct Facts {
  Fact rank, ranks, localRank, localRanks;
  const char *launcher = "";

  Status read(const Lookup &lookup, const Source &source) {
    const bool isFirst = !rank.name;
    if (Status s = rank.read(lookup, source.rank); !s)
      return s;
    if (isFirst && rank.name)
      launcher = source.launcher;
    if (Status s = ranks.read(lookup, source.ranks); !s)
      return s;
    if (Status s = localRank.read(lookup, source.localRank); !s)
      return s;
    return localRanks.read(lookup, source.localRanks);
  }

  /// Checks that the facts fit together.
  Status check() const {
    if (!ranks.name)
      return usage(shown(rank.name, std::to_string(rank.value)) +
                   " says which rank this is, and no variable how many there "
                   "are");
    if (!rank.name)
      return usage(shown(ranks.name, std::to_string(ranks.value)) +
                   " says how many ranks there are, and no variable which one "
                   "this is");
    if (Status s = checkBelow(rank, ranks); !s)
      return s;
    if (!localRanks.name || localRanks.value <= ranks.value)
      return localRank.name && localRanks.name
                 ? checkBelow(localRank, localRanks)
                 : Status::ok();
    return usage(shown(localRanks.name, std::to_string(localRanks.value)) +
                 " is more than " +
                 shown(ranks.name, std::to_string(ranks.value)));
  }

  static Status checkBelow(const Fact &rank, const Fact &ranks) {
    if (rank.value < ranks.value)
      return Status::ok();
    return usage(shown(rank.name, std::to_string(rank.value)) +
                 " isn't below " +
                 shown(ranks.name, std::to_string(ranks.value)) +
                 ": ranks count from 0");
  }
};

/// A number of 1 to 65535 - `more`, plus `more`.
Status readPort(const char *name, const std::string &text, int more,
                int &port) {
  uint64_t number = 0;
  if (!readNumber(text, number) || number < 1 ||
      number > uint64_t(kMostPort - more))
    return usage(shown(name, text) + " is no port of 1 to " +
                 std::to_string(kMostPort - more));
  port = int(number) + more;
  return Status::ok();
}

/// The port of a step of a job: the same on all its hosts.
int slurmPort(const Lookup &lookup) {
  uint64_t job = 0, step = 0;
  (void)readNumber(valueOf(lookup, "SLURM_JOB_ID").value_or(""), job);
  (void)readNumber(valueOf(lookup, "SLURM_STEP_ID").value_or(""), step);
  // Unsigned numbers wrap in the same way everywhere.
  return int(kFirstSlurmPort + (job * 16 + step) % kSlurmPorts);
}

Status findAddress(const Lookup &lookup, Place &place) {
  if (const auto own = valueOf(lookup, "TMC_ADDRESS"))
    return splitAddress(*own, place.host, place.port)
               ? Status::ok()
               : usage(shown("TMC_ADDRESS", *own) + " isn't HOST:PORT");
  if (const auto host = valueOf(lookup, "MASTER_ADDR")) {
    const auto port = valueOf(lookup, "MASTER_PORT");
    if (!port)
      return usage(shown("MASTER_ADDR", *host) + " has no MASTER_PORT");
    place.host = *host;
    return readPort("MASTER_PORT", *port, kPortsAfterMaster, place.port);
  }
  const auto list = valueOf(lookup, "SLURM_JOB_NODELIST");
  if (!list || place.launcher != "Slurm")
    return Status::ok();
  place.host = firstHost(*list);
  place.port = slurmPort(lookup);
  return place.host.empty() ? usage(shown("SLURM_JOB_NODELIST", *list) +
                                    " is no list of hosts")
                            : Status::ok();
}

} // namespace

bool splitAddress(const std::string &text, std::string &host, int &port) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return false;
  host = text.substr(0, colon);
  const bool isBracketed = host.front() == '[' && host.back() == ']';
  if (isBracketed)
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string::npos)
    return false;
  return !host.empty() && bool(readPort("", text.substr(colon + 1), 0, port));
}

std::string firstHost(const std::string &list) {
  std::string host;
  for (size_t at = 0; at < list.size() && list[at] != ',';) {
    if (list[at] != '[') {
      host += list[at++];
      continue;
    }
    const size_t close = list.find(']', at);
    if (close == std::string::npos)
      return "";
    const std::string inside = list.substr(at + 1, close - at - 1);
    const std::string first = inside.substr(0, inside.find_first_of(",-"));
    uint64_t number = 0;
    if (!readNumber(first, number))
      return "";
    host += first;
    at = close + 1;
  }
  return host;
}

Status findPlace(const Lookup &lookup, Place &place) {
  place = {};
  Facts facts;
  for (const Source &source : kLaunchers)
    if (Status s = facts.read(lookup, source); !s)
      return s;
  // SLURM_NTASKS alone is of a job's script, and a Job's index alone is of a
  // Job in which each process trains by itself.
  const bool isSlurm = bool(valueOf(lookup, kOuter[0].rank));
  if ((!facts.rank.name || !facts.ranks.name) && isSlurm)
    if (Status s = facts.read(lookup, kOuter[0]); !s)
      return s;
  if (!facts.rank.name && facts.ranks.name)
    if (Status s = facts.read(lookup, kOuter[1]); !s)
      return s;
  if (!facts.rank.name && !facts.ranks.name)
    return Status::ok();
  if (Status s = facts.check(); !s)
    return s;
  place.rank = facts.rank.value;
  place.ranks = facts.ranks.value;
  place.localRank = facts.localRank.value;
  place.localRanks = facts.localRanks.value;
  place.launcher = facts.launcher;
  return findAddress(lookup, place);
}

Status findPlace(Place &place) {
  return findPlace([](const char *name) { return std::getenv(name); }, place);
}

} // namespace tmc
