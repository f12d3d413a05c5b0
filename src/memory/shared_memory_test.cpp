// SPDX-License-Identifier: Apache-2.0
#include "memory/shared_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/child_process.hpp"

namespace espalier::memory {
namespace {

constexpr std::uint64_t kThreePages = 3 * 4096;

Descriptor copy_of(const SharedMemory& memory) { return Descriptor(::dup(memory.descriptor())); }

TEST(SharedMemory, IsZeroedAndTheSameForAllWhoAttach) {
  auto made = SharedMemory::create("test", kThreePages);
  ASSERT_TRUE(made);
  EXPECT_EQ(*made->at(kThreePages - 1), std::byte{0});
  auto other = SharedMemory::attach(copy_of(*made), kThreePages, Rights::write);
  ASSERT_TRUE(other);
  *other->at(17) = std::byte{5};
  EXPECT_EQ(*made->at(17), std::byte{5});
}

// Where a program has closed its standard descriptors, what it writes there is not for the memory.
TEST(SharedMemory, TakesNoStandardDescriptor) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (int number = 0; number <= 2; ++number) close(number);
    const auto made = SharedMemory::create("test", kThreePages);
    const auto copy = made->read_only();
    ::_exit(made->descriptor() > 2 && copy->number() > 2 && ::write(2, "x", 1) < 0 ? 7 : 1);
  }
  EXPECT_EQ(base::wait_for_child(child), 7);
}

// There it is not mapped, and something else may be.
TEST(SharedMemory, IsNoMemoryOfAForkedProcess) {
  std::optional<SharedMemory> made = *SharedMemory::create("test", kThreePages);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto mapped = [](const void* at) {
      unsigned char resident = 0;
      return ::mincore(const_cast<void*>(at), 4096, &resident) == 0;
    };
    std::byte* const at = made->at(0);
    const bool before = mapped(at);
    const void* const other =
        ::mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    made.reset();
    ::_exit(!before && other == at && mapped(at) ? 7 : 1);
  }
  EXPECT_EQ(base::wait_for_child(child), 7);
  *made->at(0) = std::byte{1};
}

// A process may punch holes in it, and there may be no page to fill them.
TEST(SharedMemory, OfHugePagesIsNotAttached) {
  constexpr std::uint64_t kHuge = std::uint64_t{2} << 20;
  Descriptor huge(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (!huge) return;  // this system has none, so no process can send such memory
  ASSERT_EQ(::ftruncate(huge.number(), kHuge), 0);
  ASSERT_EQ(::fcntl(huge.number(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const auto attached = SharedMemory::attach(std::move(huge), kHuge, Rights::read);
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().code, Code::corrupt);
}

TEST(SharedMemory, CannotChangeItsLengthOrItsSeals) {
  auto made = SharedMemory::create("test", kThreePages);
  ASSERT_TRUE(made);
  EXPECT_EQ(::ftruncate(made->descriptor(), 4096), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(made->descriptor(), 2 * kThreePages), -1);
  EXPECT_EQ(::fcntl(made->descriptor(), F_ADD_SEALS, F_SEAL_WRITE), -1);
}

TEST(SharedMemory, AReadOnlyDescriptorCannotBeMappedToWrite) {
  auto made = SharedMemory::create("test", kThreePages);
  ASSERT_TRUE(made);
  auto descriptor = made->read_only();
  ASSERT_TRUE(descriptor);
  Descriptor second(::dup(descriptor->number()));
  const auto refused = SharedMemory::attach(std::move(second), kThreePages, Rights::write);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Error{Code::system, 0, EACCES}));
  const auto read = SharedMemory::attach(std::move(*descriptor), kThreePages, Rights::read);
  ASSERT_TRUE(read);
  *made->at(0) = std::byte{9};
  EXPECT_EQ(*read->at(0), std::byte{9});
}

TEST(SharedMemory, IsNoFileThatOtherUsersMayOpen) {
  const auto made = *SharedMemory::create("test", 4096);
  struct stat facts{};
  ASSERT_EQ(::fstat(made.descriptor(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600u);
}

TEST(SharedMemory, WhatCouldShrinkOrIsTooShortIsRefused) {
  Descriptor unsealed(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.number(), kThreePages), 0);
  EXPECT_EQ(SharedMemory::attach(std::move(unsealed), kThreePages, Rights::read).error().code,
            Code::corrupt);
  auto made = SharedMemory::create("test", kThreePages);
  ASSERT_TRUE(made);
  EXPECT_EQ(SharedMemory::attach(copy_of(*made), kThreePages + 1, Rights::read).error().code,
            Code::corrupt);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  Descriptor write_end(ends[1]);
  EXPECT_EQ(SharedMemory::attach(Descriptor(ends[0]), kThreePages, Rights::read).error().code,
            Code::corrupt);
}

TEST(SharedMemory, WhatWasDiscardedIsZerosForAllAndTakesNoPages) {
  auto made = SharedMemory::create("test", kThreePages);
  ASSERT_TRUE(made);
  const auto other = SharedMemory::attach(copy_of(*made), kThreePages, Rights::write);
  ASSERT_TRUE(other);
  for (std::uint64_t i = 0; i < kThreePages; i += 4096) *other->at(i) = std::byte{7};
  const auto pages = [&] {
    struct stat facts{};
    EXPECT_EQ(::fstat(made->descriptor(), &facts), 0);
    return facts.st_blocks;
  };
  EXPECT_GT(pages(), 0);
  made->discard();
  EXPECT_EQ(pages(), 0);
  EXPECT_EQ(*other->at(4096), std::byte{0});
  *other->at(0) = std::byte{8};
  EXPECT_EQ(*made->at(0), std::byte{8});
}

TEST(SharedMemory, AMappingOutlivesItsDescriptor) {
  auto made = SharedMemory::create("test", kThreePages);
  ASSERT_TRUE(made);
  made->close_descriptor();
  EXPECT_EQ(made->descriptor(), -1);
  *made->at(0) = std::byte{1};
  const SharedMemory moved = std::move(*made);
  EXPECT_EQ(*moved.at(0), std::byte{1});
}

}  // namespace
}  // namespace espalier::memory
