// SPDX-License-Identifier: Apache-2.0
// What happens to frames between switches: shims that are forged, late, damaged or gone, frames
// that are lost, and a switch in the middle that redirects to anywhere.
//
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "fabric/types.hpp"

namespace espalier::test {

class ShimTampering {
 public:
  /// `redirects`: the redirect key of each node, for a switch is trusted to write no other.
  ShimTampering(std::uint64_t seed, std::vector<fabric::RegionKey> redirects)
      : random_(seed), redirects_(std::move(redirects)) {}

  /// An empty frame is lost.
  void operator()(std::vector<std::byte>& frame);

  std::uint64_t count = 0;          // of frames that were changed
  std::uint64_t other_servers = 0;  // of these, that named another node

 private:
  base::Random random_;
  const std::vector<fabric::RegionKey> redirects_;
  std::vector<std::vector<std::byte>> seen_;
};

}  // namespace espalier::test
