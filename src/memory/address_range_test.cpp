// SPDX-License-Identifier: Apache-2.0
#include "memory/address_range.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "memory/sealed_file.hpp"

namespace espalier::memory {
namespace {

constexpr std::uint64_t kExtent = std::uint64_t{2} << 20;
constexpr std::uint64_t kRangeBytes = 4 * kExtent;

bool is_mapped(const std::byte* at) {
  unsigned char resident = 0;
  return ::mincore(const_cast<std::byte*>(at), 4096, &resident) == 0;
}

/// Ranges of each kind. Of each the first extent is written, the second was and is cleared, the
/// third was cleared as huge pages are, and the last is as it was made.
std::vector<std::pair<std::string, AddressRange>> make_ranges() {
  std::vector<std::pair<std::string, AddressRange>> ranges;
  ranges.emplace_back("private", *AddressRange::private_memory(kRangeBytes, false));
  ranges.emplace_back("strict", *AddressRange::private_memory(kRangeBytes, true));
  ranges.emplace_back("file",
                      *AddressRange::of_file(*create_sealed("test", kRangeBytes), kRangeBytes));
  for (auto& [kind, range] : ranges) {
    EXPECT_TRUE(range.open(0, 3 * kExtent)) << kind;
    for (std::uint64_t at = 0; at < 3 * kExtent; at += kExtent) range.base()[at] = std::byte{7};
    range.clear(kExtent, kExtent);
    if (kind != "file") range.clear_explicit(2 * kExtent, kExtent);
  }
  return ranges;
}

// A child that accesses the store of its parent would corrupt it or read it unnoticed; here it
// faults.
TEST(AddressRange, IsNoMemoryOfAForkedProcess) {
  const auto ranges = make_ranges();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int mapped = 0;
    for (const auto& [kind, range] : ranges) {
      for (std::uint64_t at = 0; at < kRangeBytes; at += kExtent)
        mapped += is_mapped(range.base() + at);
    }
    ::_exit(mapped);
  }
  EXPECT_EQ(base::wait_for_child(child), 0);
  for (const auto& [kind, range] : ranges) {
    for (std::uint64_t at = 0; at < kRangeBytes; at += kExtent) {
      EXPECT_TRUE(is_mapped(range.base() + at)) << kind << " at " << at;
    }
    EXPECT_EQ(range.base()[0], std::byte{7}) << kind;
    EXPECT_EQ(range.base()[kExtent], std::byte{0}) << kind;
  }
}

// What a child maps where its parent has a range stays there when the child destroys the range.
TEST(AddressRange, OfAParentUnmapsNothingOfAChild) {
  auto ranges = make_ranges();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::byte* const at = ranges.front().second.base();
    constexpr int kAlone = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    const void* const other = ::mmap(at, 4096, PROT_READ, kAlone, -1, 0);
    ranges.clear();
    ::_exit(other == at && is_mapped(at) ? 7 : 1);
  }
  EXPECT_EQ(base::wait_for_child(child), 7);
}

}  // namespace
}  // namespace espalier::memory
