// SPDX-License-Identifier: Apache-2.0
// Switches that break one rule of transactions at a time (base/planted.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "base/planted.hpp"

namespace espalier::store {

enum class Bug : std::uint8_t {
  none,
  one_object_first,       // one object of two is visible before the other
  checked_unlocked,       // conditions are looked at before the keys are locked
  order_of_steps,         // objects are locked in the order in which the transaction names them
  numbers_not_recovered,  // what a client's numbers have come to is gone with the process
  unknown_client_runs,    // a request of a client that is not known is run
};

using base::planted;

/// Steps between which another thread may do anything: a test does it there.
enum class Moment : std::uint8_t {
  checked,         // of a transaction whose conditions held, by checked_unlocked
  half_published,  // one object of two, by one_object_first
};

#if defined(ESPALIER_PLANTED_BUGS)
/// What a test wants to happen when this thread reaches a moment. Not called within itself.
inline thread_local std::function<void(Moment)> on_moment;
inline void reached(Moment moment) {
  if (!on_moment) return;
  const auto act = std::exchange(on_moment, nullptr);
  act(moment);
  on_moment = act;
}
#else
constexpr void reached(Moment) {}
#endif

}  // namespace espalier::store
