// SPDX-License-Identifier: Apache-2.0
// Checks a history of any length, scans and batches included, by the versions that the map assigned
// to its writes.
//
// The versions claim an order of all writes. The check replays the writes in that order and
// searches for each operation a moment in it at which its answer is right, such that all moments
// respect real time:
// 1. Versions of writes are positive and differ; what a write reports of the state before it
//    (existed, conditions, the value that a modify saw) is true just below its version.
// 2. An operation that began after another had ended has no earlier moment; a write a later one.
// 3. A read with its read version is right at exactly that version. Other operations without
//    effects (reads without one, writes that found nothing to do, conditions that failed) are right
//    at some version that rule 2 allows.
// 4. An item's version lies between its last change and the version that was read.
//
// Moments are assigned in order of invocation, each the earliest that rules 2 and 3 allow. Earlier
// moments only relax what later operations require, so if this finds none, there is none: the check
// refuses exactly the histories that have no linearization in version order.
// Cost: O(n log n) for n operations and delivered items, times the versions that the search for a
// moment tries, which concurrency bounds.
#pragma once

#include <optional>
#include <string>

#include "tests/support/history.hpp"

namespace espalier::test {

/// Returns what is wrong, with the operations concerned; nullopt if the history is linearizable in
/// the order of its versions.
[[nodiscard]] std::optional<std::string> replay_versions(const History& history);

}  // namespace espalier::test
