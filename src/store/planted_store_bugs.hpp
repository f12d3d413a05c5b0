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
  checked_unlocked,       // conditions are checked before the keys are locked
  order_of_steps,         // objects are locked in the order in which the transaction names them
  numbers_not_recovered,  // outcomes of numbers do not survive the process
  unknown_client_runs,    // a request of an unknown client runs
};

using base::planted;

/// Points between two steps, at which a test lets another thread act.
enum class Moment : std::uint8_t {
  checked,         // after the conditions held, under checked_unlocked
  half_published,  // one object of two is visible, under one_object_first
};

#if defined(ESPALIER_PLANTED_BUGS)
/// What this thread calls at such a point; not reentrant.
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
