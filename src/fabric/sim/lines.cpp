// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/lines.hpp"

#include <algorithm>
#include <utility>

namespace espalier::fabric::sim {

std::vector<Piece> cut_in_pieces(std::uint64_t remote, std::uint32_t bytes, const Faults& faults,
                                 base::Random& random) {
  std::vector<Piece> pieces;
  if (bytes == 0) return pieces;
  if (!random.chance(faults.tear)) {
    pieces.push_back({0, bytes, 0});
    return pieces;
  }
  for (std::uint32_t offset = 0; offset != bytes;) {
    const auto in_line = static_cast<std::uint32_t>((remote + offset) % kLineBytes);
    const std::uint32_t length = std::min(bytes - offset, kLineBytes - in_line);
    pieces.push_back({offset, length, 0});
    offset += length;
  }
  const Range moments{0, faults.tear_ns.draw(random)};
  std::vector<std::uint64_t> times(pieces.size());
  for (std::uint64_t& time : times) time = moments.draw(random);
  std::sort(times.begin(), times.end());
  for (std::size_t left = pieces.size(); left > 1; --left) {
    std::swap(pieces[left - 1], pieces[random.below(left)]);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i].after_ns = times[i];
  return pieces;
}

}  // namespace espalier::fabric::sim
