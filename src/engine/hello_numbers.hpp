// SPDX-License-Identifier: Apache-2.0
// The numbers of the hellos of one session, whose client counts them (wire/link_proof.hpp).
//
// A hello may have been kept back on its way, by whoever sees the network, and be said later from
// elsewhere. So where the pair that it asks for takes the place of another, those of the rings and
// of READs, a hello is good only above all of its kind that came before. Pairs for WRITEs stand
// beside each other and are asked for by several threads: their hellos may come a little out of
// order.
//
// Thread: one at a time.
#pragma once

#include <cstdint>

#include "engine/seen_numbers.hpp"
#include "fabric/planted_fabric_bugs.hpp"
#include "wire/ring_link.hpp"

namespace espalier::offload {

class HelloNumbers {
 public:
  /// Whether a hello of this way and number is good, which it is once. Of a way that asks for no
  /// pair of a session it always is.
  [[nodiscard]] bool take(wire::LinkWay way, std::uint32_t number) {
    if (fabric::planted(fabric::Bug::hello_taken_twice)) return true;
    switch (way) {
      case wire::LinkWay::write:
      case wire::LinkWay::send:
        if (fabric::planted(fabric::Bug::hello_taken_late)) return late_rings_.take(number);
        return rise(rings_, number);
      case wire::LinkWay::reads: return rise(reads_, number);
      case wire::LinkWay::writes: return writes_.take(number);
      case wire::LinkWay::invalid:
      case wire::LinkWay::prove: break;
    }
    return true;
  }

 private:
  static bool rise(std::uint32_t& highest, std::uint32_t number) {
    if (number <= highest) return false;
    highest = number;
    return true;
  }

  std::uint32_t rings_ = 0;  // the highest that came
  std::uint32_t reads_ = 0;
  SeenNumbers writes_;
  SeenNumbers late_rings_;  // of the planted bug
};

}  // namespace espalier::offload
