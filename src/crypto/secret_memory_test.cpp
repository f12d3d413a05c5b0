// SPDX-License-Identifier: Apache-2.0
// Where secrets lie: what the system says of those pages, and what is left in them.
#include "crypto/secret_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "crypto/secret_pool.hpp"

namespace espalier::crypto {
namespace {

/// What the kernel says of the pages around an address (/proc/self/smaps).
std::string flags_of(const void* at) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(at);
  bool here = false;
  std::string line;
  while (std::getline(maps, line)) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2 && line.find(':') > 10) {
      here = begin <= wanted && wanted < end;
    }
    if (here && line.starts_with("VmFlags:")) return line + " ";
  }
  return {};
}

/// Sanitizers make mlock() do nothing.
constexpr bool locks_memory() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return false;
#endif
#endif
  return true;
}

void expect_secret(const void* at) {
  const std::string flags = flags_of(at);
  EXPECT_EQ(flags.find(" lo ") != std::string::npos, locks_memory()) << flags;
  EXPECT_NE(flags.find(" dd "), std::string::npos) << flags;
  EXPECT_NE(flags.find(" dc "), std::string::npos) << flags;
}

TEST(SecretMemory, IsLockedAndKeptOutOfDumpsAndChildren) {
  const auto secret = Secret<SecretBytes>::make();
  ASSERT_TRUE(secret.has_value());
  expect_secret(&**secret);
  // Of other memory the same look says nothing of the kind.
  const std::vector<std::byte> usual(1 << 20);
  const std::string flags = flags_of(usual.data());
  ASSERT_NE(flags, "");
  EXPECT_EQ(flags.find(" dd "), std::string::npos) << flags;
}

// Those of a file of secrets, and the keys of sessions.
TEST(SecretMemory, OfAPoolIsNoOther) {
  const auto pool = SecretPool::make();
  std::vector<SecretPool::Slot> slots;
  for (std::size_t i = 0; i < 2 * kSecretPageBytes / kSecretBytes; ++i) {
    auto slot = pool->take();
    ASSERT_TRUE(slot);
    slots.push_back(std::move(*slot));
  }
  for (const std::size_t at : {std::size_t{0}, slots.size() / 2, slots.size() - 1}) {
    expect_secret(&*slots[at]);
  }
}

TEST(SecretMemory, IsOverwritten) {
  std::vector<std::byte> bytes(100, std::byte{7});
  cleanse(bytes.data(), 50);
  EXPECT_EQ(bytes[49], std::byte{0});
  EXPECT_EQ(bytes[50], std::byte{7});
  const auto pool = SecretPool::make();
  auto slot = pool->take();
  ASSERT_TRUE(slot);
  SecretBytes& place = **slot;
  place.fill(std::byte{7});
  { const SecretPool::Slot gone = std::move(*slot); }
  EXPECT_EQ(place, SecretBytes{}) << "its page is the pool's still";
}

TEST(SecretMemory, PagesAreCounted) {
  const std::size_t before = secret_pages_taken();
  {
    const auto secret = Secret<SecretBytes>::make();
    ASSERT_TRUE(secret);
    EXPECT_EQ(**secret, SecretBytes{});
    EXPECT_EQ(secret_pages_taken(), before + 1);
  }
  EXPECT_EQ(secret_pages_taken(), before);
}

}  // namespace
}  // namespace espalier::crypto
