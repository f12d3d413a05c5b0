// SPDX-License-Identifier: Apache-2.0
// Regions that other processes map: sealed, punched, in huge pages where the system has them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "memory/buffer_pool.hpp"
#include "memory/region.hpp"
#include "memory/sealed_file.hpp"

namespace espalier::memory {
namespace {

Region reserve_shared(std::uint64_t extents, bool huge_pages) {
  return *Region::reserve(
      {.bytes_max = extents * kExtentBytes, .huge_pages = huge_pages, .shared = true});
}

SharedMemory map_to_read(const Region& region) {
  return *SharedMemory::attach(*region.read_only(), region.bytes(), Rights::read);
}

/// Kilobytes of one line of /proc/self/smaps, summed over the mappings that begin in a range.
std::uint64_t smaps_kib(const std::byte* base, std::uint64_t bytes, const std::string& field) {
  std::ifstream file("/proc/self/smaps");
  const auto low = std::bit_cast<std::uintptr_t>(base);
  bool inside = false;
  std::uint64_t sum = 0;
  for (std::string line; std::getline(file, line);) {
    std::uintptr_t begin = 0;
    char dash = 0;
    std::istringstream header(line);
    if (header >> std::hex >> begin >> dash && dash == '-') {
      inside = begin >= low && begin < low + bytes;
    } else if (inside && line.starts_with(field + ":")) {
      sum += std::stoull(line.substr(field.size() + 1));
    }
  }
  return sum;
}

// Else what lies elsewhere would hide as many filled holes as it has bytes.
TEST(SharedRegion, WhatIsChargedIsHeldAndNoneOfTheFile) {
  Region region = reserve_shared(8, false);
  const std::uint64_t held = region.memory_bytes();
  ASSERT_TRUE(region.charge(4 * kExtentBytes));
  EXPECT_EQ(region.memory_bytes(), held + 4 * kExtentBytes);
  const SharedMemory reader = map_to_read(region);
  std::uint64_t sum = 0;
  for (std::uint64_t at = 0; at < 4 * kExtentBytes; at += 4096) {
    sum += std::to_integer<std::uint64_t>(*reader.at(region.end_offset() + at));
  }
  EXPECT_EQ(sum, 0u);
  region.punch_holes();  // or the thread was faster
  EXPECT_EQ(region.memory_bytes(), held + 4 * kExtentBytes);
  region.uncharge(4 * kExtentBytes);
  EXPECT_EQ(region.memory_bytes(), held);
}

TEST(SharedRegion, IsSealedAndOthersMapItToRead) {
  Region region = reserve_shared(8, false);
  EXPECT_EQ(::fcntl(region.descriptor(), F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  const std::uint64_t offset = *region.take(1);
  std::memcpy(region.at(offset), "hello", 5);
  const SharedMemory reader = map_to_read(region);
  for (const std::byte* base : {region.at(0), reader.at(0)}) {
    EXPECT_EQ(std::bit_cast<std::uintptr_t>(base) % kExtentBytes, 0u);
  }
  EXPECT_EQ(std::memcmp(reader.at(offset), "hello", 5), 0);
  EXPECT_EQ(*reader.at(region.bytes() - 1), std::byte{0});
  const Descriptor read_only = *region.read_only();
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, read_only.number(), 0),
            MAP_FAILED);
  EXPECT_NE(::fallocate(read_only.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096),
            0);
}

TEST(SharedRegion, WhatIsNoSealedMemoryIsNotMapped) {
  const Region region = reserve_shared(4, false);
  const auto longer = SharedMemory::attach(*region.read_only(), region.bytes() + 1, Rights::read);
  EXPECT_EQ(longer.error().code, Code::corrupt);
  Descriptor open_file(::memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open_file.number(), 4096), 0);
  EXPECT_EQ(check_sealed(open_file, 4096).error().code, Code::corrupt);
  EXPECT_EQ(
      Region::reserve({.bytes_max = kExtentBytes, .huge_pages = false})->read_only().error().code,
      Code::unsupported);
}

TEST(SharedRegion, GivesItsBlocksBack) {
  Region region = reserve_shared(8, false);
  const std::uint64_t before = region.memory_bytes();
  const std::uint64_t offset = *region.take(3);
  std::memset(region.at(offset), 0xFF, 3 * kExtentBytes);
  EXPECT_EQ(region.memory_bytes(), before + 3 * kExtentBytes);
  const SharedMemory reader = map_to_read(region);
  EXPECT_EQ(*reader.at(offset), std::byte{0xFF});
  region.give(offset, 3 * kExtentBytes);
  EXPECT_EQ(region.memory_bytes(), before);
  EXPECT_EQ(*reader.at(offset), std::byte{0});
  ASSERT_TRUE(region.retake(offset, 3 * kExtentBytes));
  EXPECT_EQ(*region.at(offset + kExtentBytes), std::byte{0});
}

TEST(SharedRegion, HolesThatReadersFilledArePunchedAgain) {
  Region region = reserve_shared(32, false);
  const std::uint64_t kept = *region.take(1);
  std::memset(region.at(kept), 0x5A, kExtentBytes);
  const std::uint64_t gone = *region.take(4);
  region.give(gone, 4 * kExtentBytes);
  const SharedMemory reader = map_to_read(region);
  const auto read = [&](std::uint64_t begin, std::uint64_t bytes) {
    std::uint64_t sum = 0;
    for (std::uint64_t at = 0; at < bytes; at += 4096) {
      sum += std::to_integer<std::uint64_t>(*reader.at(begin + at));
    }
    return sum;
  };
  EXPECT_EQ(read(gone, kExtentBytes), 0u);
  EXPECT_FALSE(region.punch_holes());  // not worth it yet
  EXPECT_EQ(read(gone, 4 * kExtentBytes) + read(region.end_offset(), 4 * kExtentBytes), 0u);
  const std::uint64_t filled = region.memory_bytes();
  if (filled > region.taken_bytes() + region.limit_bytes() / 8) {  // else the thread was faster
    region.punch_holes();
  }
  EXPECT_LE(region.memory_bytes(), region.taken_bytes());
  EXPECT_EQ(*reader.at(kept + 5), std::byte{0x5A});
}

TEST(SharedRegion, IsInHugePagesOrSaysWhyNot) {
  Region region = reserve_shared(8, true);
  region.wait_until_idle();
  const std::uint64_t offset = *region.take(1);
  region.wait_until_idle();
  std::memset(region.at(offset), 1, kExtentBytes);
  if (region.page_kind() == PageKind::collapsed) {
    EXPECT_EQ(region.page_message(), "2 MiB pages of shared memory (MADV_COLLAPSE)");
    EXPECT_GE(smaps_kib(region.base(), region.bytes(), "ShmemPmdMapped"), 2 * 2048u);
    // Memory that was given back and is taken again is collapsed behind the writer's back.
    region.give(offset, kExtentBytes);
    ASSERT_TRUE(region.retake(offset, kExtentBytes));
    region.wait_until_idle();
    std::memset(region.at(offset), 1, kExtentBytes);
    EXPECT_GE(smaps_kib(region.base(), region.bytes(), "ShmemPmdMapped"), 2 * 2048u);
  } else {
    EXPECT_TRUE(region.page_message().starts_with("4 KiB pages of shared memory (MADV_COLLAPSE: "))
        << region.page_message();
  }
}

TEST(SharedRegion, TheSpareExtentIsWithinTheLimit) {
  Region region = reserve_shared(4, true);
  for (int i = 0; i < 3; ++i) {
    region.wait_until_idle();
    ASSERT_TRUE(region.take(1)) << i;
  }
  region.wait_until_idle();
  EXPECT_FALSE(region.take(1));
  EXPECT_LE(region.memory_bytes(), region.limit_bytes());
}

TEST(SharedRegion, CarriesAPool) {
  Region region = reserve_shared(16, true);
  BufferPool pool(region);
  const SharedMemory reader = map_to_read(region);
  std::vector<std::pair<std::uint64_t, SizeClass>> buffers;
  for (int i = 0; i < 2000; ++i) {
    const SizeClass cls = i % 3 == 0 ? node_class_of(4096) : class_of(700);
    const auto offset = pool.allocate(cls);
    ASSERT_TRUE(offset);
    std::memcpy(pool.at(*offset) + sizeof(wire::BufferHeader), &*offset, sizeof *offset);
    buffers.emplace_back(*offset, cls);
  }
  for (const auto& [offset, cls] : buffers) {
    EXPECT_EQ(std::memcmp(reader.at(offset + sizeof(wire::BufferHeader)), &offset, sizeof offset),
              0);
    pool.release(offset, cls);
  }
  pool.trim();
  region.wait_until_idle();
  EXPECT_EQ(region.taken_bytes(), kExtentBytes);
}

}  // namespace
}  // namespace espalier::memory
