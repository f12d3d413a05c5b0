// SPDX-License-Identifier: Apache-2.0
// Replay protection for the hellos of one session, which the client numbers (wire/link_proof.hpp).
//
// An attacker may capture a hello and replay it later from elsewhere. Where the requested pair
// replaces another (the pairs of the rings and of READs), a hello must have a number above all
// earlier ones of its kind. Pairs for WRITEs coexist and several threads request them: their hellos
// may arrive slightly out of order, and each number is accepted once, within a window.
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
  /// Whether a hello of this way and number is accepted, which happens once. A way that requests no
  /// pair of a session is always accepted.
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

  std::uint32_t rings_ = 0;  // the highest so far
  std::uint32_t reads_ = 0;
  SeenNumbers writes_;
  SeenNumbers late_rings_;  // for the planted bug
};

}  // namespace espalier::offload
