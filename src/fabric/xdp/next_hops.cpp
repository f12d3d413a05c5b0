// SPDX-License-Identifier: Apache-2.0
#include "fabric/xdp/next_hops.hpp"

#include <algorithm>
#include <cstring>

#include "base/random.hpp"

namespace espalier::fabric::xdp {

/// Its own, or else the one of its set that was not used for longest.
NextHops::Place* NextHops::place_of(const roce::IpAddress& ip) {
  std::uint64_t halves[2];
  std::memcpy(halves, ip.bytes.data(), sizeof halves);
  const std::uint64_t mixed = base::mix64(base::mix64(halves[0] ^ secret_) ^ halves[1]);
  Place* const set = &places_[mixed % kSets * kWays];
  for (Place* each = set; each != set + kWays; ++each) {
    if (each->taken && each->ip == ip) return each;
  }
  return std::min_element(set, set + kWays,
                          [](const Place& a, const Place& b) { return a.used_ns < b.used_ns; });
}

const roce::MacAddress* NextHops::find(const roce::IpAddress& to, std::uint64_t now_ns) {
  Place& place = *place_of(to);
  const bool is_new = !place.taken || place.ip != to;
  if (is_new || now_ns >= place.ask_again_ns) {
    if (now_ns >= may_ask_ns_) {
      if (is_new) place = Place{.taken = true, .ip = to};
      ask(place, now_ns);
      may_ask_ns_ = now_ns + kAskNs;
    } else if (is_new) {
      return nullptr;
    }
  }
  place.used_ns = now_ns;
  return place.known ? &place.mac : nullptr;
}

void NextHops::ask(Place& place, std::uint64_t now_ns) {
  place.known = false;
  if (const auto hop = neighbours_.next_hop(place.ip)) {
    const auto neighbour = neighbours_.find(*hop);
    if (neighbour.mac) {
      place.known = true;
      place.mac = *neighbour.mac;
    }
    if (!neighbour.is_sure) neighbours_.look_for(place.ip);
  }
  if (place.known) {
    place.wait_ns = 0;
    place.ask_again_ns = now_ns + kGoodNs;
    return;
  }
  place.wait_ns = std::clamp(place.wait_ns + place.wait_ns / 2, kAgainNs, kAgainNsMax);
  place.ask_again_ns = now_ns + place.wait_ns;
}

}  // namespace espalier::fabric::xdp
