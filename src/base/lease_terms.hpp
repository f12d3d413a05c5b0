// SPDX-License-Identifier: Apache-2.0
// How leases are timed.
#pragma once

#include <cstdint>

namespace espalier::base {

/// In nanoseconds. The host grants leases on its own terms, and sends them with each lease.
struct LeaseTerms {
  std::uint64_t renew_every_ns = 20'000'000;    ///< by the reader, while it has walks in flight
  std::uint64_t believed_for_ns = 200'000'000;  ///< answers, after a renewal was answered
  std::uint64_t lost_after_ns = 1'000'000'000;  ///< without a renewal

  friend bool operator==(const LeaseTerms&, const LeaseTerms&) = default;
};

}  // namespace espalier::base
