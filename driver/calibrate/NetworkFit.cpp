#include "driver/calibrate/NetworkFit.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace tmc;

std::optional<MeasuredNetwork> tmc::networkOfText(const std::string &text) {
  MeasuredNetwork network;
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    if (line.consume_front("network ")) {
      network.description = line.str();
      continue;
    }
    auto [call, rest] = line.split(' ');
    auto [bytes, seconds] = rest.split(' ');
    int64_t size = 0;
    double time = 0;
    if (bytes.getAsInteger(10, size) || seconds.getAsDouble(time) ||
        size <= 0 || !(time > 0) || !std::isfinite(time))
      return std::nullopt;
    if (network.times.empty() || network.times.back().bytes != size)
      network.times.push_back({size});
    if (call == "gather")
      network.times.back().gatherSeconds = time;
    else if (call == "exchange")
      network.times.back().exchangeSeconds = time;
    else
      return std::nullopt;
  }
  for (const NetworkTime &time : network.times)
    if (!(time.gatherSeconds > 0 && time.exchangeSeconds > 0))
      return std::nullopt;
  if (network.times.empty() || network.description.empty())
    return std::nullopt;
  return network;
}

void tmc::keepFastest(const MeasuredNetwork &network,
                      MeasuredNetwork &fastest) {
  if (fastest.times.size() != network.times.size()) {
    fastest = network;
    return;
  }
  for (auto [time, least] : llvm::zip_equal(network.times, fastest.times)) {
    least.gatherSeconds = std::min(least.gatherSeconds, time.gatherSeconds);
    least.exchangeSeconds =
        std::min(least.exchangeSeconds, time.exchangeSeconds);
  }
}

/// Values of at least so many bytes give the rate, of at most so many the
/// latency.
static constexpr int64_t kLargeBytes = 1 << 20, kSmallBytes = 64 << 10;

Channel tmc::fitNetwork(const std::vector<NetworkTime> &times, int64_t ranks) {
  const auto moved = [&](const NetworkTime &time) {
    return double(time.bytes) * double(ranks - 1) / double(ranks);
  };
  double bytes = 0, seconds = 0;
  for (const NetworkTime &time : times)
    if (time.bytes >= std::min(kLargeBytes, times.back().bytes)) {
      bytes += 2 * moved(time);
      seconds += time.gatherSeconds + time.exchangeSeconds;
    }
  Channel channel{0, bytes / seconds};
  std::vector<double> latencies;
  for (const NetworkTime &time : times)
    if (time.bytes <= kSmallBytes)
      for (const double its : {time.gatherSeconds, time.exchangeSeconds})
        latencies.push_back(
            std::max(0.0, its - moved(time) / channel.bytesPerSecond));
  if (latencies.empty())
    return channel;
  const auto middle = latencies.begin() + ptrdiff_t(latencies.size() / 2);
  std::nth_element(latencies.begin(), middle, latencies.end());
  channel.latencySeconds = *middle;
  return channel;
}

std::string tmc::networkTable(const MeasuredNetwork &network) {
  std::string text;
  raw_string_ostream os(text);
  const Channel &channel = network.level.channel;
  os << "\n  "
     << left_justify(std::to_string(network.ranks) + " ranks by " +
                         network.description,
                     33)
     << right_justify("gather us", 12) << right_justify("exchange us", 13)
     << right_justify("fitted us", 11) << "\n";
  for (const NetworkTime &time : network.times) {
    const bool isSmall = time.bytes < (1 << 20);
    const std::string size = std::to_string(time.bytes >> (isSmall ? 10 : 20)) +
                             (isSmall ? " KiB" : " MiB");
    const double fitted =
        secondsOver({network.level}, double(time.bytes), {network.ranks});
    os << "  " << left_justify(size, 33)
       << format("%12.1f%13.1f%11.1f\n", time.gatherSeconds * 1e6,
                 time.exchangeSeconds * 1e6, fitted * 1e6);
  }
  os << "  " << left_justify("latency, rate of a rank", 33)
     << format("%9.1f us%8.2f GB/s\n", channel.latencySeconds * 1e6,
               channel.bytesPerSecond * 1e-9);
  return text;
}
