// SPDX-License-Identifier: Apache-2.0
// A simulated network of packet ports inside one thread, with virtual time, that loses, duplicates,
// delays and reorders packets. The engine of `roce` is tested on it: a seed makes a run repeatable.
//
// Thread: one. The network outlives its ports.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric::roce {

struct NetworkFaults {
  double loss = 0;
  double duplicate = 0;
  double damage = 0;  // a byte of the packet changes; the ICRC says so, and it is dropped there
  std::uint64_t delay_min_ns = 1000;
  std::uint64_t delay_max_ns = 1000;  // more than the least: packets overtake each other
  std::uint32_t room_packets = 0;     // that a port holds until it is flushed; 0: any number
};

class PacketNetwork {
 public:
  explicit PacketNetwork(std::uint64_t seed) : random_(seed) {}

  /// A port that packets to this address reach. `window_bytes`: see PacketPort.
  std::unique_ptr<PacketPort> open(const PortAddress& address,
                                   std::uint32_t window_bytes = 256 * 1024);

  /// Goes on to when the next packet arrives, but not further than so.
  void advance(std::uint64_t at_most_ns);
  [[nodiscard]] std::uint64_t now_ns() const { return now_ns_; }

  NetworkFaults faults;
  /// Observes all that ports send, as it leaves; may be null.
  std::function<void(const PortAddress& from, const PortAddress& to, std::span<const std::byte> ib)>
      tap;
  /// Whether the network loses this packet, whatever the faults say; null: it does not.
  std::function<bool(const PortAddress& from, const PortAddress& to, std::span<const std::byte> ib)>
      loses;
  /// A switch on the path, which may change packets, or redirect them: it sees each that is not
  /// lost, duplicates one by one; null: nothing.
  std::function<void(const PortAddress& from, const PortAddress& to, std::span<std::byte> ib)>
      middle;
  struct Counters {
    std::uint64_t sent = 0;
    std::uint64_t departures = 0;  // packets that a port flushes together are one
    std::uint64_t lost = 0;
    std::uint64_t duplicated = 0;
    std::uint64_t damaged = 0;
    std::uint64_t overtaken = 0;
  };
  [[nodiscard]] const Counters& counters() const { return counters_; }
  /// Sends bytes as they are, from any address: what a hostile machine does.
  void inject(const PortAddress& from, const PortAddress& to, std::span<const std::byte> ib);

 private:
  class Port;
  struct Flying {
    std::uint64_t arrives_ns = 0;
    std::uint64_t number = 0;
    PortAddress from;
    PortAddress to;
    std::vector<std::byte> ib;
  };
  struct Later {
    bool operator()(const Flying& a, const Flying& b) const {
      return std::pair(a.arrives_ns, a.number) > std::pair(b.arrives_ns, b.number);
    }
  };

  void send(const PortAddress& from, const PortAddress& to, std::vector<std::byte> ib);
  void fly(const PortAddress& from, const PortAddress& to, std::vector<std::byte> ib);

  base::Random random_;
  std::uint64_t now_ns_ = 1;
  std::uint64_t number_ = 0;
  std::uint64_t last_arrival_ns_ = 0;
  std::priority_queue<Flying, std::vector<Flying>, Later> flying_;
  std::vector<Port*> ports_;
  Counters counters_;
};

}  // namespace espalier::fabric::roce
