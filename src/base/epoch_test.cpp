// SPDX-License-Identifier: Apache-2.0
#include "base/epoch.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <utility>

#include "base/child_process.hpp"
#include "base/places.hpp"

namespace espalier::base {
namespace {

/// Zeroed memory for a table, shared with children and mappable twice.
class SharedTableMemory {
 public:
  explicit SharedTableMemory(std::uint32_t participants)
      : bytes_(EpochTable::bytes(participants)), file_(::memfd_create("epoch", MFD_CLOEXEC)) {
    if (::ftruncate(file_, static_cast<off_t>(bytes_)) != 0) std::abort();
    first_ = map();
  }
  ~SharedTableMemory() {
    ::munmap(first_, bytes_);
    ::close(file_);
  }
  SharedTableMemory(const SharedTableMemory&) = delete;
  SharedTableMemory& operator=(const SharedTableMemory&) = delete;

  [[nodiscard]] std::byte* map() const {
    void* const at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (at == MAP_FAILED) std::abort();
    return static_cast<std::byte*>(at);
  }
  [[nodiscard]] std::byte* at() const { return first_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  int file_;
  std::byte* first_;
};

/// A child process that runs `body`, says so, and then waits to be killed.
class Child {
 public:
  explicit Child(const std::function<bool()>& body) {
    int ready[2];
    if (::pipe(ready) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ < 0) std::abort();
    if (pid_ == 0) {
      const char said = body() ? 'y' : 'n';
      if (::write(ready[1], &said, 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char said = 'n';
    ok_ = ::read(ready[0], &said, 1) == 1 && said == 'y';
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait_for_child(pid_);
    pid_ = 0;
  }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  pid_t pid_ = 0;
  bool ok_ = false;
};

TEST(EpochTable, StartsAtTwoAndAdvances) {
  const SharedTableMemory memory(4);
  EpochTable table = EpochTable::create(memory.at(), 4);
  EXPECT_EQ(table.current(), 2u);
  EXPECT_EQ(table.oldest(), 2u);
  EXPECT_EQ(table.advance(), 2u);
  EXPECT_EQ(table.current(), 3u);
  EXPECT_EQ(table.oldest(), 3u);
  EXPECT_EQ(table.participants(), 0u);
  EXPECT_EQ(table.participants_max(), 4u);
}

TEST(EpochTable, OldestIsThatOfTheOldestReader) {
  const SharedTableMemory memory(4);
  EpochTable table = EpochTable::create(memory.at(), 4);
  EpochSlot a = *table.join();
  EpochSlot b = *table.join();
  EXPECT_EQ(a.exposed(), 0u);
  a.enter();
  EXPECT_EQ(a.exposed(), 2u);
  table.advance();
  b.enter();
  EXPECT_EQ(b.exposed(), 3u);
  table.advance();
  EXPECT_EQ(table.oldest(), 2u);
  a.exit();
  EXPECT_EQ(table.oldest(), 3u);
  b.expose(b.now());
  EXPECT_EQ(table.oldest(), 4u);
  b.exit();
  EXPECT_EQ(table.oldest(), 4u);
}

TEST(EpochTable, SlotsAreTakenAndLeft) {
  const SharedTableMemory memory(2);
  EpochTable table = EpochTable::create(memory.at(), 2);
  std::optional<EpochSlot> a = *table.join();
  EpochSlot b = *table.join();
  EXPECT_EQ(table.participants(), 2u);
  const auto none = table.join();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error(), full_error(Places::participants, 2));

  a->enter();
  table.advance();
  a.reset();  // leaves even while it reads
  EXPECT_EQ(table.participants(), 1u);
  EXPECT_EQ(table.oldest(), 3u);
  EXPECT_TRUE(table.join());

  EpochSlot moved = std::move(b);
  EXPECT_TRUE(moved.joined());
  EXPECT_EQ(table.participants(), 1u);
  moved = EpochSlot();
  EXPECT_FALSE(moved.joined());
  EXPECT_EQ(table.participants(), 0u);
}

TEST(EpochTable, AttachSeesWhatCreateMadeAtAnotherAddress) {
  const SharedTableMemory memory(3);
  EpochTable table = EpochTable::create(memory.at(), 3);
  table.advance();
  std::byte* const elsewhere = memory.map();
  {
    auto other = EpochTable::attach(elsewhere, memory.bytes());
    ASSERT_TRUE(other);
    EXPECT_EQ(other->participants_max(), 3u);
    EXPECT_EQ(other->asymmetric(), table.asymmetric());
    EpochSlot slot = *other->join();
    slot.enter();
    table.advance();
    EXPECT_EQ(table.oldest(), 3u);
    EXPECT_EQ(table.participants(), 1u);
  }
  ::munmap(elsewhere, memory.bytes());
}

TEST(EpochTable, AttachRefusesWhatIsNoTable) {
  const SharedTableMemory memory(3);
  const auto detail = [&](std::size_t bytes) {
    const auto table = EpochTable::attach(memory.at(), bytes);
    EXPECT_FALSE(table);
    EXPECT_EQ(table.error().code, Code::corrupt);
    return table.error().detail;
  };
  EXPECT_EQ(detail(memory.bytes()), 2u);  // zeros
  EpochTable::create(memory.at(), 3);
  EXPECT_EQ(detail(127), 1u);
  EXPECT_EQ(detail(memory.bytes() - 1), 1u);
  auto& header = *std::launder(reinterpret_cast<EpochTableHeader*>(memory.at()));
  const EpochTableHeader good = header;
  header.magic ^= 1;
  EXPECT_EQ(detail(memory.bytes()), 2u);
  header = good;
  header.version = 9;
  EXPECT_EQ(detail(memory.bytes()), 3u);
  header = good;
  header.participants = 0;
  EXPECT_EQ(detail(memory.bytes()), 4u);
  header.participants = ~0u;
  EXPECT_EQ(detail(memory.bytes()), 4u);
  header.participants = 4;
  EXPECT_EQ(detail(memory.bytes()), 1u);
  header = good;
  header.flags = 2;
  EXPECT_EQ(detail(memory.bytes()), 5u);
  header = good;
  header.global_epoch = 1;
  EXPECT_EQ(detail(memory.bytes()), 6u);
  header = good;
  EXPECT_TRUE(EpochTable::attach(memory.at(), memory.bytes()));
}

TEST(EpochTable, BytesAreAsDrawn) {
  const SharedTableMemory memory(1);
  EpochTable table = EpochTable::create(memory.at(), 1);
  EXPECT_EQ(std::memcmp(memory.at(), "espepoch", 8), 0);
  EpochSlot slot = *table.join();
  slot.enter();
  std::uint64_t words[2];
  std::memcpy(words, memory.at() + 128, sizeof(words));
  EXPECT_EQ(words[0], 2u);
  EXPECT_EQ(words[1] >> 42, static_cast<std::uint64_t>(::getpid()));
}

TEST(EpochProcess, ADeadProcessIsSweptAndALivingOneIsNot) {
  const SharedTableMemory memory(2);
  EpochTable table = EpochTable::create(memory.at(), 2);
  EpochSlot mine = *table.join();
  Child child([&] {
    auto other = EpochTable::attach(memory.map(), memory.bytes());
    if (!other) return false;
    static EpochSlot slot;
    slot = *other->join();
    slot.enter();
    return true;
  });
  ASSERT_TRUE(child.ok());
  table.advance();
  EXPECT_EQ(table.oldest(), 2u);
  EXPECT_EQ(table.sweep_dead(), 0u);
  EXPECT_EQ(table.oldest(), 2u);
  EXPECT_EQ(table.join().error().code, Code::too_many_participants);

  child.kill();
  EXPECT_EQ(table.oldest(), 2u);  // death alone frees nothing
  EXPECT_EQ(table.sweep_dead(), 1u);
  EXPECT_EQ(table.oldest(), 3u);
  EXPECT_EQ(table.participants(), 1u);
  EXPECT_TRUE(mine.joined());
}

TEST(EpochProcess, JoinSweepsWhenTheTableIsFull) {
  const SharedTableMemory memory(1);
  EpochTable table = EpochTable::create(memory.at(), 1);
  Child child([&] {
    static EpochSlot slot;
    slot = *table.join();
    slot.enter();
    return true;
  });
  ASSERT_TRUE(child.ok());
  EXPECT_FALSE(table.join());
  child.kill();
  const auto slot = table.join();
  ASSERT_TRUE(slot);
  EXPECT_EQ(slot->exposed(), 0u);
}

TEST(EpochProcess, AForkedCopyOfASlotLeavesNothing) {
  const SharedTableMemory memory(1);
  EpochTable table = EpochTable::create(memory.at(), 1);
  EpochSlot slot = *table.join();
  slot.enter();
  const Child child([&] {
    slot.leave();
    return !slot.joined();
  });
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(table.participants(), 1u);
  EXPECT_EQ(slot.exposed(), 2u);
}

}  // namespace
}  // namespace espalier::base
