// SPDX-License-Identifier: Apache-2.0
// Decides whether a short history has any linearization, from requests and answers alone: it
// ignores versions, so it also serves maps without them.
//
// The search of Wing and Gong (1993) over the operations that may come next, with Lowe's (2017)
// cache of failed pairs (operations done, contents). Two additions: an operation without effects
// whose answer is right now is taken immediately and for good, since a linearization that takes it
// later can take it now as well; and the contents are numbers, one for each key, so a scan is a
// loop over an array. Exponential in the worst case (deciding linearizability is NP-complete),
// hence the limit on steps. A condition on a version holds if the key still has the value that was
// read with that version: exact as long as no value is written to a key twice. Reads from snapshots
// are left out.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/history.hpp"

namespace espalier::test {

enum class Answer : std::uint8_t {
  yes,
  no,
  unknown,  ///< the limit was reached: to be counted apart, never as a pass
};

struct CheckResult {
  Answer answer = Answer::unknown;
  std::string why;          ///< no: the operations among which no order was found
  std::uint64_t steps = 0;  ///< operations tried
};

/// Searches for a linearization, trying at most so many operations.
[[nodiscard]] CheckResult check_linearizable(const History& history,
                                             std::uint64_t steps_max = 1'000'000);

}  // namespace espalier::test
