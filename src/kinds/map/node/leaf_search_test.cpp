// SPDX-License-Identifier: Apache-2.0
// Searching a leaf and an interior node against looking at every item.
#include "kinds/map/node/leaf_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "kinds/map/node/interior_builder.hpp"
#include "kinds/map/testing/leaf_model.hpp"

namespace espalier::tree {
namespace {

using namespace std::string_literals;

Position linear_lower_bound(const NodeView& leaf, std::string_view key) {
  std::uint32_t at = leaf.geometry().sorted_begin;
  while (at < leaf.sorted_end()) {
    const SortedItem item = leaf.sorted_item(at);
    if (item.key >= key) return {at, item.key == key};
    at = item.end;
  }
  return {leaf.sorted_end(), false};
}

// Keys of the leaf, keys right beside them, random ones, and the fences.
std::vector<std::string> probes(const LeafModel& model, base::Random& random) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : model.sorted()) {
    if (keys.size() > 300) break;
    keys.push_back(key);
    if (key.size() < model.geometry().key_bytes_max) keys.push_back(key + '\0');
    if (key.size() > model.low().size() + 1) keys.push_back(key.substr(0, key.size() - 1));
  }
  for (const auto& [key, value] : model.newest()) {
    if (keys.size() > 400) break;
    keys.push_back(key);
  }
  for (int i = 0; i < 30; ++i) keys.push_back(model.key(random));
  if (!model.low().empty()) keys.push_back(model.low());
  return keys;
}

void check_leaf(const LeafModel& model, const SearchKit& kit, base::Random& random) {
  const NodeView leaf = model.view();
  SearchKey search;
  for (const std::string& key : probes(model, random)) {
    search.assign(key);
    const LeafProbe probe = probe_leaf(leaf, search, kit);
    const Position found = lower_bound(leaf, search, probe);
    const Position expected = linear_lower_bound(leaf, key);
    ASSERT_EQ(found.offset, expected.offset) << testing::PrintToString(key);
    ASSERT_EQ(found.exact, expected.exact);
    SortedItem item;
    ASSERT_EQ(find_sorted(leaf, search, probe, item), expected.exact);
    if (expected.exact) {
      ASSERT_EQ(std::string_view(item.value, item.value_bytes), model.sorted().at(key));
    }
    for (const std::uint64_t version :
         {LeafModel::kCreated, (LeafModel::kCreated + model.newest_version()) / 2,
          model.newest_version(), kNewest}) {
      const auto entry = find_in_log(leaf, search, probe.log_matches, version);
      const auto& visible = model.at(version);
      const auto in_model = visible.find(key);
      const bool there = entry ? !entry->erase() : expected.exact;
      ASSERT_EQ(there, in_model != visible.end()) << testing::PrintToString(key);
      if (entry && there) {
        ASSERT_EQ(std::string_view(entry->value, entry->value_bytes), in_model->second);
        ASSERT_LE(entry->version, version);
      }
    }
  }
}

TEST(LeafSearch, FindsWhatLookingAtEveryItemFinds) {
  base::Random random(base::seed_from_environment(31));
  for_many_leaves(random, [&](const LeafModel& model) {
    for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
      const SearchKit* kit = search_kit(isa);
      if (kit == nullptr) continue;
      SCOPED_TRACE(kit->name);
      check_leaf(model, *kit, random);
      if (HasFatalFailure()) return;
    }
  });
}

// Lays out the items that `item_of(i)` makes for i = 0, 1 and so on, as many as there is room for.
template <class ItemOf>
void fill(LeafModel& model, const ItemOf& item_of) {
  LeafModel::Items items;
  const std::uint64_t room = leaf_room(model.geometry(), model.low(), model.high());
  std::uint64_t bytes = 0;
  for (int i = 0; i < 100000; ++i) {
    const std::pair<std::string, std::string> item = item_of(i);
    bytes += placed_bytes(make_record(item.first, item.second, false), model.geometry());
    if (bytes > room) break;
    items.insert(item);
  }
  model.build(items);
}

// Fills a leaf of each geometry with what `item_of(model, i)` makes, and checks it.
template <class ItemOf>
void check_filled(base::Random& random, const ItemOf& item_of) {
  for (const MapOptions& options : all_geometries()) {
    LeafModel model(options);
    fill(model, [&](int i) { return item_of(model, i); });
    check_leaf(model, best_search_kit(), random);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// The first 8 bytes behind the prefix are equal in all keys: only comparisons can decide.
TEST(LeafSearch, DecidesBetweenChunksWithEqualHeads) {
  base::Random random(base::seed_from_environment(32));
  check_filled(random, [&](const LeafModel& model, int i) {
    const std::string key = (i < 3 ? "a" : "samesame") + std::to_string(100000 + i);
    return std::pair(key, model.value(random));
  });
}

// Keys of more than 16 bytes whose first and last 8 are equal, in items of one length: several of a
// chunk look like the one that is looked for, and only their middles tell.
TEST(LeafSearch, TellsKeysApartThatHaveBothEndsInCommon) {
  base::Random random(base::seed_from_environment(36));
  check_filled(random, [](const LeafModel&, int i) {
    return std::pair("samehead" + std::to_string(100000 + 7 * i) + "sametail", "value");
  });
}

// Items longer than a chunk leave chunks in which none begins.
TEST(LeafSearch, StepsOverEmptyChunks) {
  base::Random random(base::seed_from_environment(33));
  for (const MapOptions& options : all_geometries()) {
    LeafModel model(options);
    const Geometry& g = model.geometry();
    fill(model, [&](int i) {
      std::string key = "k" + std::to_string(100000 + i);
      key.resize(random.below(2) == 0 ? g.key_bytes_max : key.size(), 'x');
      return std::pair(key, std::string(random.below(2) == 0 ? g.inline_value_bytes_max : 0, 'v'));
    });
    bool empty = false;
    for (std::uint32_t c = 0; c < model.view().chunks(); ++c) {
      empty = empty || model.view().chunk_start(c) == 0;
    }
    EXPECT_TRUE(empty || g.node_bytes < 4096 || g.node_bytes > 16384) << "the case must occur";
    check_leaf(model, best_search_kit(), random);
    if (HasFatalFailure()) return;
  }
}

// --- interior nodes ---

struct Interior {
  Geometry g;
  NodeBuffer buffer;
  std::vector<std::string> separators;  // of child 1 and so on
  std::string low;
  std::string high;

  Interior(const MapOptions& options, base::Random& random, const std::string& prefix,
           std::size_t most)
      : g(Geometry::of(options)),
        buffer(g),
        low(prefix),
        high(prefix.empty() ? "" : prefix + '\xFF') {
    std::map<std::string, int> keys;
    for (std::size_t i = 0; i < most; ++i) {
      keys[prefix + "m" +
           random_key(random, g.key_bytes_max - 2 - static_cast<std::uint32_t>(prefix.size()))];
    }
    for (const auto& [key, unused] : keys) separators.push_back(key);
    while (!interior_fits(g, children(), low, high)) separators.pop_back();
    NodeFrame frame;
    frame.low = low;
    frame.high = high;
    build_interior(buffer.data(), g, 1, children(), frame);
    go_live(buffer.data(), 1);
  }
  [[nodiscard]] std::vector<Child> children() const {
    std::vector<Child> all{{low, 100}};
    for (std::size_t i = 0; i < separators.size(); ++i) {
      all.push_back({separators[i], static_cast<wire::Lid>(101 + i)});
    }
    return all;
  }
};

void check_interior(const Interior& interior, const SearchKit& kit, base::Random& random) {
  const NodeView node = interior.buffer.view();
  const auto& separators = interior.separators;
  std::vector<std::string> keys = separators;
  for (const std::string& key : separators) {
    keys.push_back(key + '\0');
    keys.push_back(key.substr(0, key.size() - 1) + static_cast<char>(key.back() - 1) + "\xFF");
  }
  for (int i = 0; i < 50; ++i) keys.push_back(interior.low + "m" + random_key(random, 12));
  keys.push_back(interior.low + "\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
  keys.push_back(interior.low + '\0');
  SearchKey search;
  for (const std::string& key : keys) {
    if (key.size() > wire::kKeyBytesMax) continue;
    search.assign(key);
    const auto above = std::upper_bound(separators.begin(), separators.end(), key);
    ASSERT_EQ(choose_child(node, search, kit), above - separators.begin())
        << testing::PrintToString(key);
    const auto not_below = std::lower_bound(separators.begin(), separators.end(), key);
    ASSERT_EQ(choose_child_descending(node, search, kit), not_below - separators.begin());
  }
  search.assign("");
  ASSERT_EQ(choose_child_descending(node, search, kit), separators.size());
}

TEST(InteriorSearch, ChoosesTheChildThatCoversTheKey) {
  base::Random random(base::seed_from_environment(34));
  for (std::uint32_t node_bytes = 512; node_bytes <= 65536; node_bytes *= 2) {
    for (const char* prefix : {"", "p", "sharedprefix"}) {
      for (const std::size_t most : {0, 1, 15, 16, 17, 40, 1200}) {
        const Interior interior({.node_bytes = node_bytes}, random, prefix, most);
        for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
          if (search_kit(isa) == nullptr) continue;
          SCOPED_TRACE(std::string(search_kit(isa)->name) + " " + std::to_string(node_bytes) + " " +
                       prefix + " " + std::to_string(most));
          check_interior(interior, *search_kit(isa), random);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Separators behind a number of equal bytes, some of them prefixes of others followed by zeros;
// keys at each position that the separators distinguish.
void check_shared_prefix(const MapOptions& options, const std::string& shared,
                         const std::string& low, const std::string& high, base::Random& random) {
  Interior interior(options, random, "", 0);
  interior.low = low;
  interior.high = high;
  std::set<std::string> tails{"", std::string(1, '\0'), std::string(3, '\0'), "m"};
  while (tails.size() < 60) tails.insert(random_key(random, 12));
  interior.separators.clear();
  for (const std::string& tail : tails) {
    if (high.empty() || shared + tail < high) interior.separators.push_back(shared + tail);
  }
  while (!interior_fits(interior.g, interior.children(), low, high)) interior.separators.pop_back();
  NodeFrame frame;
  frame.low = low;
  frame.high = high;
  build_interior(interior.buffer.data(), interior.g, 1, interior.children(), frame);
  const NodeView node = interior.buffer.view();
  std::vector<std::string> keys = interior.separators;
  for (std::size_t at = 0; at <= shared.size(); ++at) {
    const std::string begin = shared.substr(0, at);
    for (const std::string& end : {""s, "\0"s, std::string(9, '\0'), "\xFF"s})
      keys.push_back(begin + end);
    if (at == shared.size()) break;
    for (const int step : {-1, 1}) {
      keys.push_back(begin + static_cast<char>(shared[at] + step) + shared.substr(at + 1) + "m");
    }
  }
  for (const std::string& separator : interior.separators) {
    keys.push_back(separator + '\0');
    keys.push_back(separator.substr(0, separator.size() - 1));
  }
  SearchKey search;
  for (const std::string& key : keys) {
    if (key.empty() || key.size() > interior.g.key_bytes_max || key < low) continue;
    if (!high.empty() && key >= high) continue;
    search.assign(key);
    for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
      if (search_kit(isa) == nullptr) continue;
      const auto above =
          std::upper_bound(interior.separators.begin(), interior.separators.end(), key);
      ASSERT_EQ(choose_child(node, search, *search_kit(isa)), above - interior.separators.begin())
          << testing::PrintToString(key);
      const auto not_below =
          std::lower_bound(interior.separators.begin(), interior.separators.end(), key);
      ASSERT_EQ(choose_child_descending(node, search, *search_kit(isa)),
                not_below - interior.separators.begin())
          << testing::PrintToString(key);
    }
  }
}

TEST(InteriorSearch, ComparesWhatAllSeparatorsBeginWith) {
  base::Random random(base::seed_from_environment(36));
  for (const MapOptions& options : all_geometries()) {
    const std::size_t most = Geometry::of(options).key_bytes_max - 12;
    for (const std::size_t bytes : {1, 7, 8, 9, 17, 64, 400}) {
      if (bytes > most) continue;
      SCOPED_TRACE(std::to_string(options.node_bytes) + " " + std::to_string(bytes));
      for (const char letter : {'s', '\0', '\x7F'}) {
        std::string shared(bytes, letter);
        check_shared_prefix(options, shared, "", "", random);
        if (letter == '\0') continue;
        // Fences that share some of it, and some of that is theirs alone.
        const std::string half = shared.substr(0, bytes / 2);
        check_shared_prefix(options, shared, half, half + "\xFE", random);
        check_shared_prefix(options, shared, shared.substr(0, bytes - 1), shared + "\xFF\xFF",
                            random);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Heads that are all equal and all different, behind a prefix that the fences do not have.
TEST(InteriorSearch, HeadsBehindThePrefixTellSeparatorsApart) {
  base::Random random(base::seed_from_environment(37));
  const Geometry g = Geometry::of({});
  NodeBuffer buffer(g);
  std::vector<std::string> separators;
  for (int i = 0; i < 300; ++i) separators.push_back("user:0000" + std::to_string(1000 + 3 * i));
  std::vector<Child> children{{"", 100}};
  for (const std::string& key : separators) children.push_back({key, 1});
  build_interior(buffer.data(), g, 1, children, {});
  const NodeView node = buffer.view();
  const NodeHead head = NodeHead::read(node.bytes());
  SearchKey search;
  for (int i = 0; i < 900; ++i) {
    search.assign("user:0000" + std::to_string(1000 + i));
    const GroupChoice choice = choose_group(node, head, search, best_search_kit());
    const bool begins_a_child = i % 3 == 0;
    ASSERT_EQ(ties_among_children(node, choice, best_search_kit()), begins_a_child);
  }
}

TEST(InteriorSearch, DecidesBetweenEqualHeads) {
  base::Random random(base::seed_from_environment(35));
  for (const MapOptions& options : all_geometries()) {
    Interior interior(options, random, "", 5);
    interior.separators.clear();
    for (int i = 0; i < 1000; ++i) {
      interior.separators.push_back((i < 3 ? "a" : "samesame") + std::to_string(1000 + i));
      if (!interior_fits(interior.g, interior.children(), "", "")) {
        interior.separators.pop_back();
        break;
      }
    }
    build_interior(interior.buffer.data(), interior.g, 1, interior.children(), {});
    check_interior(interior, best_search_kit(), random);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace espalier::tree
