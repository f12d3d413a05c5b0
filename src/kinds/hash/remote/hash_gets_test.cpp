// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/remote/hash_gets.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "base/testing/seeds.hpp"
#include "kinds/hash/remote/testing/hash_world.hpp"

namespace espalier::place {
namespace {

fabric::sim::Faults good_weather(bool in_order) {
  fabric::sim::Faults faults;
  faults.reads_in_order = in_order;
  return faults;
}

/// Worlds until what seldom happens has happened.
void run_hash_seeds(
    const fabric::sim::Faults& faults, const HashWorldOptions& options, std::uint64_t usually,
    HashWorldCounts& counts, const std::function<bool()>& all_happened = [] { return true; }) {
  base::Seeds seeds(usually);
  for (; seeds.more(all_happened()); seeds.done()) {
    ASSERT_EQ(wrong_with_hash_reads(seeds.ended() + 1, faults, options, counts), "");
  }
  EXPECT_TRUE(all_happened());
  seeds.report("answers", counts.gets.answers);
  seeds.report("gets that began again", counts.gets.restarts);
  seeds.report("of these, that came too late", counts.gets.too_late);
  seeds.report("splits", counts.splits);
  seeds.report("contended", counts.contended);
  seeds.report("without an answer", counts.lost);
}

TEST(HashGets, AShortPairTakesTwoWaitsAndThenOne) {
  HashWorldOptions options;
  options.writes = false;
  options.first_keys = 0;
  HashWorld world(1, good_weather(true), options);
  ASSERT_TRUE(world.connected());
  world.host().put("pear", "green");
  const auto waits = [&] { return world.gets().traffic().round_trips; };
  EXPECT_EQ(world.get("pear"), "green");
  EXPECT_EQ(waits(), 4u) << "the partition's line, the directory, the bin, the record";
  std::uint64_t before = waits();
  EXPECT_EQ(world.get("pear"), "green");
  EXPECT_EQ(waits() - before, 1u);
  // Of another bin, whose directory is known.
  world.host().put("plum", "blue");
  before = waits();
  EXPECT_EQ(world.get("plum"), "blue");
  EXPECT_EQ(waits() - before, 2u);
  before = waits();
  EXPECT_EQ(world.get("plum"), "blue");
  EXPECT_EQ(waits() - before, 1u);
}

// Each in one wait, and none of them begun by a lane, but for what has changed since.
TEST(HashGets, ThoseOfRememberedBinsGoInGroups) {
  HashWorldOptions options;
  options.writes = false;
  options.together = true;
  options.first_keys = 300;
  options.long_pairs = false;
  HashWorld world(1, good_weather(true), options);
  ASSERT_TRUE(world.connected());
  const std::vector<std::string> chain = keys_of_other_tags(*world.host().map, 9, 3);
  for (const std::string& key : chain) world.host().put(key, "in " + key);
  const auto grouped = [&] { return world.gets().counts().grouped; };
  const auto waits = [&] { return world.gets().traffic().round_trips; };
  for (const std::string& key : chain) EXPECT_EQ(world.get(key), "in " + key);
  // Of a chain of two buckets, in any place.
  std::uint64_t before = grouped();
  std::uint64_t waited = waits();
  for (const std::string& key : chain) EXPECT_EQ(world.get(key), "in " + key);
  EXPECT_EQ(grouped() - before, chain.size());
  EXPECT_EQ(waits() - waited, chain.size());
  // One that was replaced, or erased, is read as all else is, and the new one is remembered.
  world.host().put(chain[1], "another");
  EXPECT_TRUE(world.host().map->erase(world.host().thread, chain[2]));
  before = grouped();
  EXPECT_EQ(world.get(chain[1]), "another");
  EXPECT_EQ(world.get(chain[2]), std::nullopt);
  EXPECT_EQ(grouped(), before);
  EXPECT_EQ(world.get(chain[1]), "another");
  EXPECT_EQ(grouped(), before + 1);
  // What a snapshot has made two states of, and a value that is longer than the last ones were.
  const auto held = world.host().map->hold(world.host().thread);
  ASSERT_TRUE(held);
  world.host().put(chain[1], "newest");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(world.get(chain[1]), "newest");
  world.host().map->drop(*held);
  EXPECT_EQ(grouped(), before + 1);
  const std::string longer(900, 'l');
  world.host().put(chain[3], longer);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(world.get(chain[3]) == longer);
  before = grouped();
  EXPECT_TRUE(world.get(chain[3]) == longer);
  EXPECT_EQ(grouped(), before + 1);
}

// Whose header alone is read once more: in one wait, or, where READs keep no order, in one less.
TEST(HashGets, ARecordThatIsRememberedIsNotReadAgain) {
  struct Way {
    bool in_order;
    bool together;
    std::uint64_t waits;
  };
  for (const auto [in_order, together, waits] :
       {Way{true, false, 1}, Way{false, false, 2}, Way{true, true, 1}}) {
    HashWorldOptions options;
    options.writes = false;
    options.together = together;
    options.first_keys = 0;
    options.record_cache_bytes = 64 << 10;
    HashWorld world(1, good_weather(in_order), options);
    ASSERT_TRUE(world.connected());
    world.host().put("pear", "green");
    EXPECT_EQ(world.get("pear"), "green");
    EXPECT_EQ(world.gets().counts().kept, 0u);
    const tree::WalkTraffic before = world.gets().traffic();
    EXPECT_EQ(world.get("pear"), "green");
    const tree::WalkTraffic& after = world.gets().traffic();
    EXPECT_EQ(world.gets().counts().kept, 1u);
    EXPECT_EQ(after.round_trips - before.round_trips, waits);
    EXPECT_EQ(after.reads - before.reads, 3u) << "the map's header, the bin, the record's header";
    EXPECT_LT(after.bytes - before.bytes, 2 * hash::kLineBytes + 40);
    // Another in its place, then none, then one that is too long to be remembered.
    world.host().put("pear", "yellow");
    EXPECT_EQ(world.get("pear"), "yellow");
    EXPECT_EQ(world.get("pear"), "yellow");
    EXPECT_EQ(world.gets().counts().kept, 2u);
    EXPECT_TRUE(world.host().map->erase(world.host().thread, "pear"));
    EXPECT_EQ(world.get("pear"), std::nullopt);
    const std::string longer(200, 'p');
    world.host().put("pear", longer);
    for (int times = 0; times < 3; ++times) EXPECT_EQ(world.get("pear"), longer);
    EXPECT_EQ(world.gets().counts().kept, 2u);
  }
}

TEST(HashGets, ARecordInThePlaceOfARememberedOneIsRead) {
  EXPECT_EQ(wrong_where_a_slot_comes_back(true, false), "");
  EXPECT_EQ(wrong_where_a_slot_comes_back(false, false), "");
  EXPECT_EQ(wrong_where_a_slot_comes_back(true, true), "");
}

TEST(HashGets, WhatIsNotThereIsNotFound) {
  for (const bool in_order : {true, false}) {
    HashWorldOptions options;
    options.writes = false;
    options.first_keys = 0;
    HashWorld world(1, good_weather(in_order), options);
    ASSERT_TRUE(world.connected());
    EXPECT_EQ(world.get("pear"), std::nullopt) << "nothing was ever written";
    world.host().put("pear", "green");
    EXPECT_EQ(world.get("plum"), std::nullopt);
    const auto before = world.gets().traffic().round_trips;
    EXPECT_EQ(world.get("plum"), std::nullopt);
    EXPECT_EQ(world.gets().traffic().round_trips - before, in_order ? 1u : 4u);
    EXPECT_EQ(world.get("pear"), "green");
    EXPECT_TRUE(world.host().map->erase(world.host().thread, "pear"));
    EXPECT_EQ(world.get("pear"), std::nullopt);
    EXPECT_EQ(world.error, Code::invalid);
  }
}

TEST(HashGets, AKeyThatMovesBehindItsChainIsFound) { EXPECT_EQ(wrong_where_a_chain_grows(), ""); }

TEST(HashGets, PairsOfAllLengths) {
  for (const bool in_order : {true, false}) {
    HashWorldOptions options;
    options.writes = false;
    options.first_keys = 0;
    HashWorld world(1, good_weather(in_order), options);
    ASSERT_TRUE(world.connected());
    for (const std::size_t key_bytes : {1, 16, 100, 1'000, 1'008, 1'009, 65'535}) {
      for (const std::size_t bytes : {0, 1, 48, 900, 1'024, 70'000}) {
        const std::string key(key_bytes, 'k');
        std::string value;
        for (std::size_t i = 0; i < bytes; ++i) value += static_cast<char>('a' + i * i % 23);
        world.host().put(key, value);
        for (int again = 0; again < 2; ++again) {
          EXPECT_TRUE(world.get(key) == value) << key_bytes << " and " << bytes;
        }
      }
    }
    const std::string longest(hash::kValueBytesMax, 'x');
    world.host().put("longest", longest);
    EXPECT_TRUE(world.get("longest") == longest);
  }
}

TEST(HashGets, AValueThatIsTooLongIsNotBrought) {
  for (const bool in_order : {true, false}) {
    HashWorldOptions options;
    options.writes = false;
    options.first_keys = 0;
    options.value_bytes_max = 100'000;
    HashWorld world(1, good_weather(in_order), options);
    ASSERT_TRUE(world.connected());
    const std::string just(100'000, 'j');
    world.host().put("just", just);
    world.host().put("more", std::string(100'001, 'm'));
    world.host().put("most", std::string(hash::kValueBytesMax, 'm'));
    EXPECT_TRUE(world.get("just") == just);
    const std::uint64_t before = world.gets().traffic().bytes;
    for (const char* const key : {"more", "most"}) {
      EXPECT_EQ(world.get(key), std::nullopt);
      EXPECT_EQ(world.error, Code::contended);
    }
    EXPECT_LT(world.gets().traffic().bytes - before, 20'000u);
    EXPECT_TRUE(world.get("just") == just);
  }
}

// Of three keys of one bin and tag only the one that is asked for is brought whole.
TEST(HashGets, LongPairsOfOtherKeysAreNotBrought) {
  HashWorldOptions options;
  options.writes = false;
  options.first_keys = 0;
  HashWorld world(1, good_weather(true), options);
  ASSERT_TRUE(world.connected());
  hash::HashFixture& host = world.host();
  constexpr std::size_t kBytes = 500'000;
  std::map<std::uint64_t, std::vector<std::string>> by_tag;
  std::vector<std::string> keys;
  for (std::string& key : keys_of_one_bin(*host.map, 2'000, 3)) {
    if (key.size() != std::string("crafted123456").size()) continue;
    auto& same = by_tag[host.map->hash(key).tag()];
    same.push_back(std::move(key));
    if (same.size() == 3) keys = same;
  }
  ASSERT_EQ(keys.size(), 3u);
  for (const std::string& key : keys) host.put(key, std::string(kBytes, key.back()));
  for (const std::string& key : keys) {
    const std::uint64_t before = world.gets().traffic().bytes;
    EXPECT_TRUE(world.get(key) == std::string(kBytes, key.back()));
    EXPECT_LT(world.gets().traffic().bytes - before, kBytes + 40'000);
  }
}

TEST(HashGets, DirectoriesOfAllMapsStayWithinOneBudget) {
  const hash::PlaceWord place = hash::PlaceWord::of(4096, 1, 3);  // 8 entries
  const std::array<std::uint64_t, 8> entries{1, 2, 3, 4, 5, 6, 7, 8};
  const auto* const bytes = reinterpret_cast<const std::byte*>(entries.data());
  DirectoryBudget budget(2 * sizeof entries);
  KnownDirectories one(4, budget);
  {
    KnownDirectories two(4, budget);
    EXPECT_TRUE(one.may_keep(16));
    EXPECT_FALSE(one.may_keep(32));
    one.keep(0, place, bytes);
    two.keep(0, place, bytes);
    one.keep(0, place, bytes);
    EXPECT_EQ(budget.bytes(), 2 * sizeof entries);
    EXPECT_EQ(one.of(0).entries[7], 8u);
    two.keep(1, place, bytes);  // there is no room beside the others
    EXPECT_EQ(budget.bytes(), sizeof entries);
    EXPECT_TRUE(one.of(0).place.none() && two.of(0).place.none());
    EXPECT_EQ(one.of(0).entries.capacity(), 0u);
    EXPECT_EQ(two.of(1).place, place);
  }
  EXPECT_EQ(budget.bytes(), 0u);
  one.keep(2, place, bytes);
  EXPECT_EQ(budget.bytes(), sizeof entries);
}

TEST(HashGets, WhatIsNoGetOfAKeyIsRefused) {
  HashWorldOptions options;
  options.writes = false;
  HashWorld world(1, good_weather(true), options);
  ASSERT_TRUE(world.connected());
  EXPECT_EQ(world.get(""), std::nullopt);
  EXPECT_EQ(world.error, Code::key_too_long);
  EXPECT_EQ(world.get(std::string(hash::kKeyBytesMax + 1, 'k')), std::nullopt);
  EXPECT_EQ(world.error, Code::key_too_long);
}

TEST(HashGets, AHandlerThatThrowsIsToldOnceAndOthersAreAnswered) {
  struct Throws final : Handler {
    void done(const Completion& completion) override {
      ++calls[completion.tag];
      if (completion.tag == 0) throw std::bad_alloc();
      found += completion.found ? 1 : 0;
    }
    std::array<int, 3> calls{};
    int found = 0;
  };
  for (const bool together : {true, false}) {
    HashWorldOptions options;
    options.writes = false;
    options.together = together;
    HashWorld world(1, good_weather(true), options);
    ASSERT_TRUE(world.connected());
    std::array<std::string, 3> keys;
    std::array<Request, 3> requests;
    for (std::uint32_t i = 0; i < 3; ++i) {
      keys[i] = HashWorld::key_of(i);
      requests[i].op = Op::get;
      requests[i].tag = i;
      requests[i].key = keys[i];
    }
    Throws handler;
    world.gets().submit(requests, handler);
    int thrown = 0;
    for (int turns = 0; world.gets().pending() != 0 && turns < 1'000; ++turns) {
      try {
        world.gets().poll();
      } catch (const std::bad_alloc&) {
        ++thrown;
      }
      world.world().run_for(10'000);
    }
    EXPECT_EQ(thrown, 1);
    EXPECT_EQ(handler.calls, (std::array<int, 3>{1, 1, 1}));
    EXPECT_EQ(handler.found, 2);
    EXPECT_EQ(world.gets().lease().in_flight(), 0u);
    EXPECT_TRUE(world.get(keys[0]));
  }
}

TEST(HashGets, ADroppedMapIsNotFound) {
  HashWorldOptions options;
  options.writes = false;
  HashWorld world(1, good_weather(true), options);
  ASSERT_TRUE(world.connected());
  EXPECT_TRUE(world.get(HashWorld::key_of(0)));
  world.host().map->set_dropped();
  EXPECT_EQ(world.get(HashWorld::key_of(0)), std::nullopt);
  EXPECT_EQ(world.error, Code::not_found);
}

TEST(HashGets, AFailedPairAnswersNothing) {
  HashWorldOptions options;
  options.writes = false;
  HashWorld world(1, good_weather(true), options);
  ASSERT_TRUE(world.connected());
  EXPECT_TRUE(world.get(HashWorld::key_of(0)));
  world.gets().fail();
  EXPECT_EQ(world.get(HashWorld::key_of(0)), std::nullopt);
  EXPECT_EQ(world.error, Code::connection_lost);
}

TEST(HashGets, HeadersThatAreNoneAreRefused) {
  hash::HashFixture f;
  hash::HashHeader good{};
  std::memcpy(&good, f.parts.region.at(f.map->header_offset), sizeof good);
  const auto fault_of = [&](const auto& change, std::uint64_t offset) {
    hash::HashHeader bad = good;
    change(bad);
    const auto read = HashTarget::read(bad, offset, f.parts.region.bytes());
    return read ? Error{} : read.error();
  };
  const std::uint64_t offset = f.map->header_offset;
  const auto same = [](hash::HashHeader&) {};
  EXPECT_TRUE(HashTarget::read(good, offset, f.parts.region.bytes()));
  EXPECT_EQ(fault_of([](auto& bad) { bad.magic = 1; }, offset), (Error{Code::corrupt, 0, 1}));
  EXPECT_EQ(fault_of([](auto& bad) { bad.superseded = 0; }, offset), (Error{Code::corrupt, 0, 2}));
  EXPECT_EQ(fault_of([](auto& bad) { bad.partitions = 3; }, offset), (Error{Code::corrupt, 0, 3}));
  EXPECT_EQ(fault_of([](auto& bad) { bad.partitions = 1024; }, offset),
            (Error{Code::corrupt, 0, 3}));
  EXPECT_EQ(fault_of(same, offset + 8), (Error{Code::corrupt, 0, 4}));
  EXPECT_EQ(fault_of(same, f.parts.region.bytes() - 512 + 512), (Error{Code::corrupt, 0, 4}));
  EXPECT_EQ(fault_of([](auto& bad) { bad.versions = 0; }, offset).code, Code::unsupported);
}

/// A copy of a map's region, to be read while its bytes are changed.
class ForgedRegion {
 public:
  ForgedRegion(std::uint64_t seed, bool in_order, bool together)
      : random_(seed),
        f_({.partitions = 1, .seed = hash::HashSeed{seed, 5}}),
        world_(seed, good_weather(in_order)),
        host_(world_.add_node("host")),
        client_(world_.add_node("client")),
        here_(*client_),
        there_(*host_) {
    const auto held = f_.map->hold(f_.thread);
    for (int i = 0; i < 1'500; ++i) f_.put(key(i), std::string(i % 9 == 0 ? 1'500 : 30, 'v'));
    for (int i = 0; i < 300; ++i) f_.put(key(i), "again");
    bytes_.resize(f_.parts.region.end_offset() / 8);
    std::memcpy(bytes_.data(), f_.parts.region.at(0), bytes_.size() * 8);
    f_.map->drop(*held);
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if (bytes_[i] != 0 && (i * 8 < header() || i * 8 >= header() + 72)) used_.push_back(i);
    }
    auto offered =
        host_->regions().offer({reinterpret_cast<std::byte*>(bytes_.data()), bytes_.size() * 8},
                               fabric::RemoteRights::read, 0);
    region_ = *std::move(offered);
    EXPECT_TRUE(host_->listen("host"));
    EXPECT_TRUE(connect(world_, here_, there_, "host"));
    hash::HashHeader own{};
    std::memcpy(&own, f_.parts.region.at(header()), sizeof own);
    const auto target = HashTarget::read(own, header(), bytes_.size() * 8).value();
    port_.emplace(*here_.pair, here_.sends, region_.remote(), client_->properties());
    gets_.emplace(*port_, target,
                  HashGets::Options{.in_flight = 2,
                                    .now_ns = [this] { return world_.now_ns(); },
                                    .cache = &cache_,
                                    .together = together});
  }
  [[nodiscard]] static std::string key(int number) { return "key" + std::to_string(number); }
  /// Changes some words into others that are there, or any.
  void forge() {
    for (int i = 0; i < 2'000; ++i) {
      std::uint64_t& word = bytes_[used_[random_.below(used_.size())]];
      switch (random_.below(3)) {
        case 0: word = bytes_[used_[random_.below(used_.size())]]; break;
        case 1: word ^= std::uint64_t{1} << random_.below(64); break;
        default: word = random_();
      }
    }
  }
  /// Whether a get ends, however.
  bool ends(const std::string& wanted, Handler& handler) {
    Request request;
    request.op = Op::get;
    request.key = wanted;
    gets_->submit({&request, 1}, handler);
    for (int turns = 0; gets_->poll() != 0; ++turns) {
      if (turns == 100'000) return false;
      // The node answers all that is asked.
      if (gets_->lease().due(world_.now_ns())) {
        gets_->lease().granted(1, 1, world_.now_ns(), world_.now_ns());
      }
      client_->wait(100'000);
    }
    return true;
  }

 private:
  [[nodiscard]] std::uint64_t header() const { return f_.map->header_offset; }

  base::Random random_;
  hash::HashFixture f_;
  std::vector<std::uint64_t> bytes_;
  std::vector<std::size_t> used_;
  fabric::sim::World world_;
  std::unique_ptr<fabric::Endpoint> host_;
  std::unique_ptr<fabric::Endpoint> client_;
  fabric::Registration region_;
  fabric::sim::End here_;
  fabric::sim::End there_;
  BinCache cache_{64 << 10};
  std::optional<ReadPort> port_;
  std::optional<HashGets> gets_;
};

TEST(HashGets, BytesThatAreNoMapLeadNowhere) {
  struct Ended final : Handler {
    void done(const Completion& completion) override {
      if (completion.ok) return void(++answers);
      EXPECT_EQ(completion.error.code, Code::contended);
      ++refused;
    }
    std::uint64_t answers = 0;
    std::uint64_t refused = 0;
  };
  Ended ended;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    ForgedRegion region(seed, seed % 2 == 0, seed % 4 == 0);
    for (int i = 0; i < 300; ++i) {
      ASSERT_TRUE(region.ends(ForgedRegion::key(i * 5), ended)) << "seed " << seed;
      if (i % 3 == 0) region.forge();
    }
  }
  EXPECT_GT(ended.answers, 0u);
  EXPECT_GT(ended.refused, 0u);
}

TEST(HashGetsSim, AnswersAreRightInGoodWeather) {
  for (const bool in_order : {true, false}) {
    for (const bool together : {true, false}) {
      HashWorldCounts counts;
      HashWorldOptions options;
      options.together = together;
      run_hash_seeds(good_weather(in_order), options, 6, counts);
      EXPECT_EQ(counts.lost, 0u);
      EXPECT_GT(counts.gets.answers, 50 * counts.contended);
      EXPECT_GT(counts.gets.found, counts.gets.answers / 3);
      EXPECT_GT(counts.splits, 0u);
      EXPECT_GT(counts.links, 0u);
      EXPECT_GT(counts.late, 0u);
      EXPECT_EQ(counts.gets.grouped != 0, in_order && together);
    }
  }
}

TEST(HashGetsSim, AnswersAreRightInBadWeather) {
  HashWorldCounts counts;
  run_hash_seeds(fabric::sim::Faults::harsh(), {}, 8, counts, [&] {
    return counts.torn != 0 && counts.reordered != 0 && counts.gets.restarts != 0;
  });
  EXPECT_GT(counts.gets.answers, counts.lost);
}

TEST(HashGetsSim, AnswersAreRightWhereReadsKeepTheirOrder) {
  for (const bool together : {true, false}) {
    HashWorldCounts counts;
    HashWorldOptions options;
    options.together = together;
    fabric::sim::Faults faults = fabric::sim::Faults::harsh();
    faults.reads_in_order = true;
    run_hash_seeds(faults, options, 5, counts,
                   [&] { return counts.torn != 0 && counts.gets.too_late != 0; });
    EXPECT_EQ(counts.reordered, 0u);
  }
}

TEST(HashGetsSim, WithRecordsRemembered) {
  for (const bool in_order : {true, false}) {
    for (const bool together : {true, false}) {
      HashWorldCounts counts;
      HashWorldOptions options;
      options.together = together;
      options.record_cache_bytes = 32 << 10;
      fabric::sim::Faults faults = fabric::sim::Faults::harsh();
      faults.reads_in_order = in_order;
      run_hash_seeds(faults, options, 4, counts, [&] { return counts.gets.kept != 0; });
      EXPECT_GT(counts.gets.answers, counts.lost);
      // Of few keys most records are soon replaced, and their places taken by others.
      options.first_keys = options.keys = 40;
      options.long_pairs = false;
      run_hash_seeds(faults, options, 4, counts);
    }
  }
}

TEST(HashGetsSim, WithoutAnythingRemembered) {
  HashWorldCounts counts;
  HashWorldOptions options;
  options.cache_bytes = 0;
  options.directory_bytes = 0;
  run_hash_seeds(fabric::sim::Faults::harsh(), options, 4, counts);
  EXPECT_GT(counts.gets.answers, counts.lost);
}

TEST(HashGetsSim, MapsThatAreDropped) {
  HashWorldCounts counts;
  HashWorldOptions options;
  options.drops = true;
  run_hash_seeds(fabric::sim::Faults::harsh(), options, 20, counts);
  EXPECT_GT(counts.not_found, 0u);
}

}  // namespace
}  // namespace espalier::place
