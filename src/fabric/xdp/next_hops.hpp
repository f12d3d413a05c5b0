// SPDX-License-Identifier: Apache-2.0
// A cache of the hardware addresses that packets go to, so that not each packet asks the kernel.
//
// Only the kernel's answers count. The source of a packet does not prove where its answers may go:
// an attacker that can send one frame in a peer's name would get all that is sent to that peer.
//
// Unknown peers may choose the addresses that are looked up, since a request for a connection is
// answered to the address that it names. So places are few, and the kernel is asked at most every
// kAskNs. The set of four places of an address depends on a secret, so unknown peers bring a new
// one into a set every kAskNs * kSets on the average, and it evicts the least recently used one: an
// address that is used more often than every 25 ms stays.
//
// Thread: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "fabric/roce/frame.hpp"
#include "fabric/roce/ip_flow.hpp"
#include "fabric/xdp/neighbours.hpp"

namespace espalier::fabric::xdp {

class NextHops {
 public:
  static constexpr std::uint64_t kAskNs = 100'000;
  static constexpr std::uint64_t kGoodNs = 1'000'000'000;  // so long an answer is good
  static constexpr std::uint64_t kAgainNs = 500'000;       // at first; after half as long again
  static constexpr std::uint64_t kAgainNsMax = 100'000'000;

  /// `secret`: a random number.
  NextHops(Neighbours neighbours, std::uint64_t secret)
      : neighbours_(std::move(neighbours)), secret_(secret), places_(kSets * kWays) {}

  /// The hardware address for this address; null: not known yet. Valid until the next call. Cost: a
  /// few nanoseconds; where the kernel is asked, some microseconds.
  const roce::MacAddress* find(const roce::IpAddress& to, std::uint64_t now_ns);

 private:
  static constexpr std::size_t kSets = 64;
  static constexpr std::size_t kWays = 4;

  struct Place {
    bool taken = false;
    bool known = false;
    roce::IpAddress ip;
    roce::MacAddress mac{};
    std::uint64_t used_ns = 0;
    std::uint64_t ask_again_ns = 0;
    std::uint64_t wait_ns = 0;  // between the last times, while it is not known
  };
  Place* place_of(const roce::IpAddress& ip);
  void ask(Place& place, std::uint64_t now_ns);

  Neighbours neighbours_;
  std::uint64_t secret_;
  std::uint64_t may_ask_ns_ = 0;
  std::vector<Place> places_;
};

}  // namespace espalier::fabric::xdp
