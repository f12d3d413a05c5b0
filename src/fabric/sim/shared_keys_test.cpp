// SPDX-License-Identifier: Apache-2.0
// READs by keys that sessions share: which sessions may use them, what they bring, and what becomes
// of READs that a switch redirects on their way, the duplicates of a READ each by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "fabric/shared_map.hpp"
#include "fabric/sim/responder.hpp"
#include "fabric/sim/testing/two_ends.hpp"

namespace espalier::fabric::sim {
namespace {

/// Fills what is read with what was asked for, and a number that no other READ has.
class Answering final : public SharedReads {
 public:
  void read_keyed(std::uint64_t number, std::span<std::byte> into) override {
    answer(number, into);
  }
  void read_at(std::uint64_t offset, std::span<std::byte> into) override { answer(~offset, into); }

 private:
  void answer(std::uint64_t what, std::span<std::byte> into) {
    ++reads_;
    for (std::size_t i = 0; i + 16 <= into.size(); i += 16) {
      base::store_plain(into.data() + i, what);
      base::store_plain(into.data() + i + 8, reads_);
    }
  }
  std::uint64_t reads_ = 0;
};

struct SharedScene {
  explicit SharedScene(std::uint64_t seed = 1, const Faults& faults = {})
      : ends(seed, faults),
        own(*ends.b_endpoint, 4096),
        map(std::make_shared<SharedMap>(std::make_shared<Answering>())),
        keyed(*regions().offer_shared(map, SharedKind::keyed)),
        redirect(*regions().offer_shared(map, SharedKind::redirect, kBytes)) {
    EXPECT_TRUE(ends.connect());
    EXPECT_TRUE(regions().admit(*map, own.key()));
  }
  RegionTable& regions() { return ends.b_endpoint->regions(); }
  Status read(RegionKey key, std::uint64_t address, std::span<std::byte> into) {
    const std::size_t before = ends.a.completions.size();
    EXPECT_EQ(ends.a.pair->post(WorkRequest::read(1, into, key, address)).taken, 1u);
    EXPECT_TRUE(ends.a.wait_completed(ends.world, before + 1));
    return ends.a.completions[before].status;
  }
  /// What a READ was answered, if all of it is of one moment; else 1.
  static std::uint64_t answer_in(std::span<const std::byte> bytes) {
    const auto alike = [&](std::size_t i) {
      return std::ranges::equal(bytes.subspan(i, 16), bytes.first(16));
    };
    for (std::size_t i = 0; i < bytes.size(); i += 16) {
      if (!alike(i)) return 1;
    }
    return base::load_plain<std::uint64_t>(bytes.data());
  }

  static constexpr std::uint64_t kBytes = 65536;
  TwoEnds ends;
  Offer own;  // the session's
  std::shared_ptr<SharedMap> map;
  Registration keyed;
  Registration redirect;
  std::array<std::byte, 512> bytes{};
};

TEST(SimSharedKeys, BringWhatTheMapSays) {
  SharedScene s;
  EXPECT_EQ(s.read(s.keyed.remote().key, 77, s.bytes), Status::success);
  EXPECT_EQ(SharedScene::answer_in(s.bytes), 77u);
  EXPECT_EQ(s.read(s.redirect.remote().key, s.redirect.remote().at(1024), s.bytes),
            Status::success);
  EXPECT_EQ(SharedScene::answer_in(s.bytes), ~std::uint64_t{1024});
  EXPECT_EQ(s.read(s.redirect.remote().key, s.redirect.remote().at(SharedScene::kBytes), s.bytes),
            Status::success);
  EXPECT_EQ(SharedScene::answer_in(s.bytes), 0u) << "beyond all that there is";
  s.redirect.make_void();
  EXPECT_EQ(s.read(s.redirect.remote().key, s.redirect.remote().at(1024), s.bytes),
            Status::success);
  EXPECT_EQ(SharedScene::answer_in(s.bytes), 0u) << "void";
}

TEST(SimSharedKeys, AreForThoseAloneWhoHaveAKeyOfTheirOwn) {
  {
    SharedScene s;
    s.own.region.revoke();
    EXPECT_EQ(s.read(s.keyed.remote().key, 77, s.bytes), Status::remote_access);
  }
  SharedScene s;
  s.regions().dismiss(*s.map, s.own.key());
  EXPECT_EQ(s.read(s.redirect.remote().key, s.redirect.remote().at(0), s.bytes),
            Status::remote_access);
}

TEST(SimSharedKeys, AReadIsNoLongerThanAPacket) {
  SharedScene s;
  std::vector<std::byte> bytes(kSharedReadBytesMax + 16);
  EXPECT_EQ(s.read(s.keyed.remote().key, 5, std::span(bytes).first(kSharedReadBytesMax)),
            Status::success);
  EXPECT_EQ(s.read(s.keyed.remote().key, 5, bytes), Status::remote_invalid);
}

TEST(SimSharedKeys, OthersAreReadAsBefore) {
  SharedScene s;
  s.ends.memory.set_word(8, 5);
  std::uint64_t word = 0;
  EXPECT_EQ(s.read(s.ends.memory.key(), s.ends.memory.remote(8),
                   std::as_writable_bytes(std::span(&word, 1))),
            Status::success);
  EXPECT_EQ(word, 5u);
}

// Lines come at different moments elsewhere, and requests again and again; the switch sends each of
// them where it likes.
TEST(SimSharedKeys, WhatASwitchRedirectsIsReadAtOneMoment) {
  Faults faults = Faults::harsh();
  faults.tear = 1;
  std::uint64_t redirected = 0;
  std::uint64_t passed = 0;
  std::uint64_t again = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SharedScene s(seed, faults);
    base::Random random(seed);
    s.ends.world.middle = [&](RegionKey& key, std::uint64_t& address) {
      if (key != s.keyed.remote().key || random.chance(0.5)) return;
      key = s.redirect.remote().key;
      address = s.redirect.remote().at(512 * address);
    };
    for (std::uint64_t i = 1; i < 40; ++i) {
      const Status status = s.read(s.keyed.remote().key, i, s.bytes);
      if (status != Status::success) break;  // the network has cut it off
      const std::uint64_t answer = SharedScene::answer_in(s.bytes);
      ASSERT_TRUE(answer == i || answer == ~(512 * i)) << answer;
      ++(answer == i ? passed : redirected);
    }
    again += s.ends.world.counts().reads_again;
    s.ends.world.middle = nullptr;
  }
  EXPECT_GT(redirected, 0u);
  EXPECT_GT(passed, 0u);
  EXPECT_GT(again, 0u);
}

}  // namespace
}  // namespace espalier::fabric::sim
