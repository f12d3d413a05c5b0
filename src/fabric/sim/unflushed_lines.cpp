// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/unflushed_lines.hpp"

namespace espalier::fabric::sim {
namespace {

static_assert(kLineBytes == 64, "a bit of a word for each byte");

constexpr std::uint64_t bit_of(std::uint64_t address) {
  return std::uint64_t{1} << address % kLineBytes;
}

constexpr std::uint64_t line_of(std::uint64_t address) { return address - address % kLineBytes; }

}  // namespace

void UnflushedLines::before_store(NamedRegion region, std::uint64_t remote, const std::byte* at,
                                  std::uint32_t bytes) {
  for (std::uint32_t i = 0; i != bytes; ++i) {
    const std::uint64_t address = remote + i;
    Line& line = lines_[{region.key, line_of(address)}];
    line.domain = region.domain;
    if ((line.stored & bit_of(address)) != 0) continue;  // what stood there is not durable either
    line.stored |= bit_of(address);
    line.before[address % kLineBytes] = at[i];
  }
}

void UnflushedLines::fenced(RegionKey key, std::uint64_t remote, std::uint32_t bytes) {
  for (std::uint32_t i = 0; i != bytes; ++i) {
    const auto found = lines_.find({key, line_of(remote + i)});
    if (found == lines_.end()) continue;
    found->second.stored &= ~bit_of(remote + i);
    if (found->second.stored == 0) lines_.erase(found);
  }
}

std::uint64_t UnflushedLines::crash(RegionTable::Reader& reader, base::Random& random,
                                    double chance) {
  std::uint64_t lost = 0;
  reader.enter();
  for (const auto& [name, line] : lines_) {
    if (!random.chance(chance)) continue;
    ++lost;
    for (std::uint64_t i = 0; i != kLineBytes; ++i) {
      if ((line.stored & bit_of(i)) == 0) continue;
      const WriteTarget at = reader.find_target(name.first, name.second + i, 1, line.domain);
      if (at) *at.at = line.before[i];
    }
  }
  reader.leave();
  lines_.clear();
  return lost;
}

}  // namespace espalier::fabric::sim
