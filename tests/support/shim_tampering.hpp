// SPDX-License-Identifier: Apache-2.0
// Faults of frames between switches: shims that are forged, delayed, damaged or gone, lost frames,
// and a switch in the middle that redirects to arbitrary addresses.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "fabric/types.hpp"

namespace espalier::test {

class ShimTampering {
 public:
  /// The redirect key of each node, by its IPv4 address: a switch may write no other.
  using Redirects = std::map<std::uint32_t, fabric::RegionKey>;
  /// `share`: of the shims, those that are changed.
  ShimTampering(std::uint64_t seed, Redirects redirects, double share = 0.25)
      : random_(seed), redirects_(std::move(redirects)), share_(share) {}

  /// An empty frame means a lost one.
  void operator()(std::vector<std::byte>& frame);

  std::uint64_t count = 0;          // of frames that were changed
  std::uint64_t other_servers = 0;  // of these, that named another node

 private:
  base::Random random_;
  const Redirects redirects_;
  const double share_;
  std::vector<std::vector<std::byte>> seen_;
};

}  // namespace espalier::test
