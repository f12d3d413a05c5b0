// SPDX-License-Identifier: Apache-2.0
// Each invariant is shown to refuse a tree that breaks it: bytes of a good map are changed, the
// audit must say what is wrong, and after the bytes are back it must be content.
#include "kinds/map/write/audit.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "kinds/map/node/leaf_search.hpp"
#include "kinds/map/testing/tree_fixture.hpp"
#include "kinds/map/write/audit_parts.hpp"

namespace espalier::tree {
namespace {

std::string text_of(const std::vector<std::string>& complaints) {
  std::string text;
  for (const std::string& one : complaints) text += one + "\n";
  return text;
}

class AuditTest : public ::testing::Test {
 protected:
  explicit AuditTest(const MapOptions& options = {.node_bytes = 1024}) : tree_(options) {
    for (std::uint64_t i = 0; i < 400; ++i) {  // not ascending, so that leaves keep room
      const std::string key = TreeFixture::numbered(i * 157 % 400);
      tree_.put(key, std::to_string(i));
    }
    for (int round = 0; round < 50 && first_log_entries() < 4; ++round) {
      tree_.put("key00000", "again");
      tree_.put("key00000", "once more");
      tree_.put("key00001", std::string(500, 'v'));  // out of line
    }
    EXPECT_EQ(text_of(audit(tree_.map())), "");
    leaf_ = tree_.bytes(tree_.first_leaf());
    EXPECT_FALSE(tree_.map().node(tree_.map().root).leaf());
  }

  /// Changes a number in memory, expects a complaint, and changes it back.
  template <class T>
  void expect_complaint(std::byte* at, T value, const std::string& sentence) {
    T before;
    std::memcpy(&before, at, sizeof before);
    ASSERT_NE(before, value) << sentence;
    std::memcpy(at, &value, sizeof value);
    EXPECT_NE(text_of(audit(tree_.map(), 1000)).find(sentence), std::string::npos)
        << "wanted: " << sentence << "\nfound: " << text_of(audit(tree_.map(), 1000));
    std::memcpy(at, &before, sizeof before);
    EXPECT_EQ(text_of(audit(tree_.map())), "");
  }
  template <class T>
  static T number_at(const std::byte* at) {
    T number;
    std::memcpy(&number, at, sizeof number);
    return number;
  }
  template <class T>
  void expect_field(std::byte* node, T wire::NodeHeader::* member, T value,
                    const std::string& sentence) {
    auto* header = reinterpret_cast<wire::NodeHeader*>(node);
    expect_complaint(reinterpret_cast<std::byte*>(&(header->*member)), value, sentence);
  }
  template <class T>
  static T field(const std::byte* node, T wire::NodeHeader::* member) {
    wire::NodeHeader header;
    std::memcpy(&header, node, sizeof header);
    return header.*member;
  }
  [[nodiscard]] const Geometry& g() { return tree_.map().geometry; }
  [[nodiscard]] NodeView leaf() { return {leaf_, g()}; }
  std::byte* entry(std::uint32_t index) { return leaf_ + leaf().log_offset(index); }
  std::byte* root() { return tree_.bytes(tree_.map().root); }

  [[nodiscard]] std::uint32_t first_log_entries() {
    return tree_.map().node(tree_.first_leaf()).lock_word().entries();
  }

  TreeFixture tree_;
  std::byte* leaf_ = nullptr;
};

using H = wire::NodeHeader;

TEST_F(AuditTest, RefusesWrongIdentity) {
  expect_field(leaf_, &H::map_id, 7u, "it belongs to map 7");
  expect_field(leaf_, &H::lid, 1u, "it says that its LID is 1");
  expect_field(leaf_, &H::generation, field(leaf_, &H::generation) + 1,
               "its generation is not the one that the page table expects");
  expect_field(leaf_, &H::superseded, std::uint64_t{0}, "it is in the tree but not live");
  expect_field(leaf_, &H::lock, field(leaf_, &H::lock) | 1, "it is locked");
  expect_field(leaf_, &H::self_ref, field(leaf_, &H::self_ref) + 1,
               "its reference to itself is not what the page table says");
}

TEST_F(AuditTest, RefusesWrongShape) {
  expect_field(leaf_, &H::kind, wire::NodeKind::invalid, "it is of no kind");
  expect_field(leaf_, &H::kind, wire::NodeKind::interior, "its kind does not fit its depth");
  expect_field(leaf_, &H::level, std::uint8_t{3}, "its level is 3 at the depth of level 0");
  expect_field(root(), &H::level, std::uint8_t{7}, "its level is");
}

TEST_F(AuditTest, RefusesWrongFences) {
  const wire::Lid second = tree_.map().node(tree_.map().root).child(0) == tree_.first_leaf()
                               ? leaf().right()
                               : tree_.map().node(tree_.first_leaf()).right();
  std::byte* node = tree_.bytes(second);
  const auto fence = field(node, &H::fence_begin);
  expect_complaint(node + fence, std::byte{'!'}, "its low fence is not its parent's separator");
  expect_complaint(node + fence + field(node, &H::low_bytes), std::byte{'!'},
                   "its high fence is not its parent's separator");
  expect_complaint(node + fence + field(node, &H::low_bytes), std::byte{'!'},
                   "its fences do not ascend");
  expect_field(node, &H::low_key_prefix, std::uint64_t{0},
               "its low_key_prefix is not that of its low fence");
  expect_field(node, &H::high_key_prefix, ~std::uint64_t{0},
               "its high_key_prefix is not that of its high fence");
  expect_field(node, &H::prefix_bytes, std::uint16_t{1},
               "its prefix_bytes are not what its fences");
  expect_field(node, &H::fence_begin, std::uint16_t{600},
               "its fences do not end where the node ends");
  expect_field(node, &H::low_bytes, std::uint16_t{60000}, "its fences are longer than the node");
}

TEST_F(AuditTest, RefusesWrongHistory) {
  expect_field(leaf_, &H::created, std::uint64_t{1} << 40, "it was created by a version not taken");
  expect_field(leaf_, &H::successor_ref, std::uint64_t{512}, "it is live but names a successor");
  expect_field(leaf_, &H::old_ref, wire::Ref::make(0, 1).bits,
               "its predecessor is outside the region");
  expect_field(leaf_, &H::old_ref, tree_.map().table.get(tree_.first_leaf()).bits,
               "it is its own predecessor");
  expect_field(leaf_, &H::old_ref, tree_.map().table.get(leaf().right()).bits,
               "its predecessor was not superseded when it came to be");
  expect_field(leaf_, &H::old_ref, tree_.map().table.get(leaf().right()).bits,
               "its predecessor covers none of its keys");
  const auto header = number_at<wire::BufferHeader>(tree_.map().at(tree_.map().header_offset));
  expect_field(leaf_, &H::old_ref,
               wire::Ref::make(tree_.map().header_offset, header.generation).bits,
               "its predecessor was not superseded when it came to be");
}

TEST_F(AuditTest, RefusesWrongPredecessorsAfterAMerge) {
  const auto held = tree_.store().reclaimer.hold(tree_.map(), tree_.map().clock.released());
  for (std::uint64_t i = 0; i < 60; ++i) tree_.erase(TreeFixture::numbered(i));
  std::byte* merged = nullptr;
  for (wire::Lid lid = tree_.first_leaf(); lid != 0; lid = tree_.map().node(lid).right()) {
    const wire::Ref old2 = tree_.map().node(lid).old2_ref();
    if (old2 && tree_.map().view(old2).generation() == old2.generation()) merged = tree_.bytes(lid);
  }
  ASSERT_NE(merged, nullptr) << "no leaf with two predecessors that still wait";
  expect_field(merged, &H::old2_low_key_prefix, std::uint64_t{1},
               "its old2_low_key_prefix is not that of");
  expect_field(merged, &H::old_ref, std::uint64_t{0}, "it has a second predecessor but no first");
  const wire::Ref old{field(merged, &H::old_ref)};
  if (tree_.map().view(old).generation() == old.generation()) {
    expect_field(tree_.map().at(old.offset()), &H::map_id, 9u,
                 "its predecessor belongs to another map");
  }
  tree_.store().reclaimer.drop(tree_.map(), held);
}

TEST_F(AuditTest, NeighboursAreHintsButMustBeLids) {
  const auto right = field(leaf_, &H::right);
  expect_field(leaf_, &H::right, 5u, "its neighbour 5 is no LID");
  expect_field(leaf_, &H::left, ~0u, "its neighbour 4294967295 is no LID");
  std::memcpy(leaf_ + offsetof(H, right), &tree_.map().root, sizeof right);
  EXPECT_EQ(text_of(audit(tree_.map())), "");
}

TEST_F(AuditTest, RefusesWrongSortedBlocks) {
  std::byte* first = leaf_ + g().sorted_begin;
  expect_complaint(first, std::byte{0}, "has no key or leaves the block");
  expect_complaint(first, std::byte{0x7F}, "has no key or leaves the block");
  expect_complaint(first, std::byte{70}, "is too long");
  expect_complaint(first + 2, std::byte{'z'}, "is outside the fences");
  expect_complaint(first + 9, std::byte{'9'}, "is not above the one before it");
  expect_field(leaf_, &H::items, std::uint16_t{1}, "it counts 1 sorted items");
  expect_field(leaf_, &H::sorted_end, std::uint16_t{60000}, "lie between starts and fences");
  expect_field(leaf_, &H::sorted_end, static_cast<std::uint16_t>(leaf().sorted_end() + 1),
               "the item at");
}

TEST_F(AuditTest, RefusesWrongChunks) {
  ASSERT_GE(leaf().chunks(), 2u);
  expect_complaint(leaf_ + g().key_prefixes_begin + 2, std::uint16_t{0},
                   "the head of chunk 1 is not that of its first item");
  expect_complaint(leaf_ + g().starts_begin + 1, std::byte{0xFF},
                   "the start of chunk 1 is not its first item's");
  expect_complaint(leaf_ + g().key_prefixes_begin + 2 * (g().chunks_max - 1), std::uint16_t{3},
                   "the head of chunk");
  expect_field(leaf_, &H::chunks, std::uint8_t{1}, "its number of chunks does not fit");
  expect_field(leaf_, &H::key_prefix_base, ~std::uint64_t{0}, "its heads do not span its keys");
  expect_field(leaf_, &H::key_prefix_shift, std::uint8_t{63}, "its heads do not span its keys");
}

TEST_F(AuditTest, RefusesWrongLogSlotsAndRoom) {
  const wire::LockWord lock = leaf().lock_word();
  ASSERT_GE(lock.entries(), 3u);
  std::byte* slots = leaf_ + g().slots_begin;
  expect_complaint(slots, static_cast<std::byte>(9), "log slot 0 does not point behind");
  expect_complaint(slots + 1, ~slots[1], "log slot 0 does not carry its key's tag");
  expect_complaint(slots + 2 * lock.entries(), std::uint16_t{0},
                   "a log slot behind the last entry");
  expect_complaint(leaf_ + g().places_begin + 2 * lock.entries(), std::uint16_t{0},
                   "a log place behind the last entry");
  expect_complaint(leaf_ + leaf().log_begin() + 8 * lock.units(), std::byte{0}, "filled with 0xFF");
  expect_field(leaf_, &H::lock, wire::LockWord{lock}.next(lock.entries(), lock.units() + 1).bits,
               "units of log, it says");
  expect_field(leaf_, &H::lock, wire::LockWord{lock}.next(200, 1).bits, "too many entries: 200");
  expect_field(leaf_, &H::lock, wire::LockWord{lock}.next(1, 255).bits, "longer than its room");
  expect_field(leaf_, &H::log_end, static_cast<std::uint16_t>(leaf().log_end() - 8),
               "its room ends");
  expect_field(leaf_, &H::lock, lock.bits | std::uint64_t{1} << 63, "the unused bits of its lock");
  expect_field(leaf_, &H::log_begin, std::uint16_t{136}, "its log does not begin behind");
}

TEST_F(AuditTest, RefusesWrongLogEntries) {
  using E = wire::LogEntry;
  const std::uint32_t last = leaf().lock_word().entries() - 1;
  expect_complaint(entry(1) + offsetof(E, version), std::uint64_t{1} << 40, "was not taken yet");
  expect_complaint(entry(1) + offsetof(E, version), std::uint64_t{0}, "does not ascend");
  std::byte* const places = leaf_ + g().places_begin;
  expect_complaint(places + 2, static_cast<std::uint16_t>(number_at<std::uint16_t>(places + 2) + 1),
                   "the place of log entry 1 is not the first sorted item not below it");
  expect_complaint(entry(1) + offsetof(E, reserved), std::uint16_t{1},
                   "the unused bytes of log entry 1 are not 0");
  expect_complaint(entry(last) + offsetof(E, order_hint), std::uint8_t{60},
                   "the order hint of log entry " + std::to_string(last) + " is wrong");
  const auto flags = number_at<std::uint8_t>(entry(1) + offsetof(E, flags));
  const auto with = [&](std::uint8_t bits) { return static_cast<std::uint8_t>(flags ^ bits); };
  expect_complaint(entry(1) + offsetof(E, flags), with(wire::kLogShadowsSorted),
                   "wrong about shadowing a sorted item");
  expect_complaint(entry(1) + offsetof(E, flags), with(wire::kLogSameKeyNext),
                   "wrong about the next entry having its key");
  expect_complaint(entry(1) + offsetof(E, flags), with(8), "has an unknown flag");
  expect_complaint(entry(1) + offsetof(E, flags), with(wire::kLogErase), "erases and has a value");
  expect_complaint(entry(0) + offsetof(E, key_bytes), std::uint16_t{60000},
                   "no key or leaves the log");
  expect_complaint(entry(0) + offsetof(E, key_bytes), std::uint16_t{0}, "no key or leaves the log");
  expect_complaint(entry(0) + sizeof(E), std::byte{'z'}, "log entry 0 is outside the fences");
}

TEST_F(AuditTest, RefusesWrongInteriorNodes) {
  std::byte* node = root();
  const NodeView view(node, g());
  const auto slots = field(node, &H::sorted_end);
  const auto key_at = number_at<std::uint16_t>(node + slots + 2);
  ASSERT_GE(view.children(), 3u);
  expect_field(node, &H::items, std::uint16_t{1}, "it has too few children: 1");
  expect_field(node, &H::chunks, std::uint8_t{0}, "its number of groups does not fit");
  expect_field(node, &H::sorted_end, static_cast<std::uint16_t>(slots + 2), "its key slots");
  expect_complaint(node + slots + 2, std::uint16_t{0}, "separator 1 does not lie between");
  expect_complaint(node + slots, key_at, "its first separator is not empty");
  expect_complaint(node + key_at + 2, std::byte{'z'}, "does not ascend");
  expect_complaint(node + g().groups_begin + 4, std::uint32_t{0}, "the head of child 1");
  expect_complaint(node + g().group_key_prefixes_begin, std::uint16_t{5}, "the head of group 0");
  ASSERT_GT(field(node, &H::prefix_bytes), 0u);
  expect_field(node, &H::prefix_bytes, std::uint16_t{0},
               "its prefix_bytes are not what its separators share");
  expect_field(node, &H::lock, wire::FencesShare::of(1).bits,
               "its lock word is not what its fences share");
  expect_complaint(node + g().prefix_begin, std::byte{'!'}, "what lies before its groups is not");
  expect_complaint(node + g().groups_begin - 1, std::byte{1}, "what lies before its groups is not");
  const std::uint32_t last = view.children() % 16;
  if (last != 0) {
    std::byte* group = node + view.group_offset(view.groups() - 1);
    expect_complaint(group + 64 + 4 * last, std::uint32_t{9}, "is not empty");
  }
}

TEST_F(AuditTest, RefusesWrongChildren) {
  std::byte* children = root() + g().groups_begin + 64;
  const auto second = number_at<wire::Lid>(children + 4);
  expect_complaint(children, wire::Lid{3}, "its child 3 is no node");
  expect_complaint(children, second, "is in the tree twice");
  expect_complaint(children, tree_.map().root, "is in the tree twice");
}

TEST_F(AuditTest, RefusesWrongValues) {
  SearchKey key;
  key.assign("key00001");
  const LeafProbe probe = probe_leaf(leaf(), key, tree_.map().kit);
  const auto found = find_in_log(leaf(), key, probe.log_matches, kNewest);
  ASSERT_TRUE(found && found->out_of_line);
  const auto ref = number_at<wire::ValueRef>(reinterpret_cast<const std::byte*>(found->value));
  std::byte* at = leaf_ + (reinterpret_cast<const std::byte*>(found->value) - leaf_);
  std::byte* value = tree_.map().at(wire::Ref{ref.ref}.offset());
  expect_complaint(at, std::uint64_t{1} << 63, "a value is outside the region");
  expect_complaint(at + 8, std::uint64_t{1} << 40, "a value is too long");
  expect_complaint(at + 8, std::uint64_t{400}, "a value has 500 bytes, its item says 400");
  expect_complaint(value, 9u, "a value belongs to another map");
  expect_complaint(value + 4, 0x1234u, "a value's generation");
  expect_complaint(value + 8, std::uint64_t{0}, "a value could pass for a node");
  expect_complaint(value + 16, std::uint64_t{0}, "a value is not live");
}

TEST_F(AuditTest, RefusesWrongMapHeaders) {
  std::byte* header = tree_.map().at(tree_.map().header_offset);
  using M = wire::MapHeader;
  expect_complaint(header, 9u, "the map's header belongs to map 9");
  expect_complaint(header + offsetof(M, created), std::uint64_t{0}, "could pass for a node");
  expect_complaint(header + offsetof(M, superseded), std::uint64_t{0},
                   "the map's header is not live");
  expect_complaint(header + offsetof(M, magic), std::uint64_t{0}, "is of another format");
  expect_complaint(header + offsetof(M, node_bytes), 512u, "has other options");
  expect_complaint(header + offsetof(M, root), 3u, "names another root or page table");
  expect_complaint(header + offsetof(M, read_version), std::uint64_t{1}, "is the newest released");
}

TEST_F(AuditTest, RefusesWrongLidsAndTablePages) {
  MapCore& map = tree_.map();
  const wire::Lid free_lid = map.root + 4000;
  expect_complaint(map.at(map.table.entry_offset(free_lid)), map.table.get(map.root).bits,
                   "names a buffer, is not in the tree and does not wait");
  const auto pages = map.table.buffers();
  expect_complaint(map.at(pages[0].first), 9u, "the page table's directory belongs to map 9");
  expect_complaint(map.at(pages[1].first), 9u, "a page of the page table belongs to map 9");
  const wire::Lid lost = map.table.allocate();
  EXPECT_NE(text_of(audit(map)).find("LIDs in use, the tree has"), std::string::npos);
  map.table.release(lost);
  EXPECT_EQ(text_of(audit(map)), "");
}

TEST_F(AuditTest, RefusesWrongWaitingBuffers) {
  const auto waiting = tree_.store().reclaimer.waiting(tree_.map(), true);
  ASSERT_FALSE(waiting.buffers.empty());
  std::byte* buffer = tree_.map().at(waiting.buffers.front().offset);
  expect_complaint(buffer, 9u, "a waiting buffer belongs to map 9");
  expect_complaint(buffer + 16, std::uint64_t{0}, "a waiting buffer was not superseded by");
}

TEST_F(AuditTest, RefusesWrongCounters) {
  MapCore& map = tree_.map();
  const auto complains = [&](const std::string& sentence) {
    EXPECT_NE(text_of(audit(map)).find(sentence), std::string::npos) << sentence;
  };
  map.items.add(0, 1);
  complains("the counter of items says 401 and there are 400");
  map.items.add(0, -1);
  ++map.leaves;
  complains("the counter of leaves says");
  --map.leaves;
  ++map.interior_nodes;
  complains("the counter of interior nodes says");
  --map.interior_nodes;
  map.value_bytes += 512;
  complains("the counter of value bytes says");
  map.value_bytes -= 512;
  EXPECT_EQ(text_of(audit(map)), "");
}

TEST_F(AuditTest, RefusesLostBuffers) {
  MapCore& map = tree_.map();
  const auto lost = *tree_.store().pool.allocate(map.node_class);
  EXPECT_NE(text_of(audit(map)).find("are handed out, and maps have"), std::string::npos);
  tree_.store().pool.release(lost, map.node_class);
  EXPECT_EQ(text_of(audit(map)), "");
}

TEST(Audit, RefusesBuffersThatShareBytes) {
  const auto complaints = [](std::vector<BufferUse> buffers) {
    Report report(10);
    audit_overlaps(buffers, report);
    return text_of(report.take());
  };
  const auto cls = memory::class_of(1024);
  EXPECT_EQ(complaints({{8192, cls}, {9216, cls}, {7168, cls}}), "");
  EXPECT_EQ(complaints({{8192, cls}, {8704, cls}}), "two buffers share the bytes at offset 8704\n");
  EXPECT_EQ(complaints({{8192, cls}, {8192, cls}}), "two buffers share the bytes at offset 8192\n");
}

TEST_F(AuditTest, RefusesPredecessorsWhereVersionsAreOff) {
  TreeFixture off({.node_bytes = 1024, .versions = false});
  off.fill(400);
  for (std::uint64_t i = 0; i < 400; i += 2) off.erase(TreeFixture::numbered(i));
  EXPECT_EQ(text_of(audit(off.map())), "");
  std::byte* leaf = off.bytes(off.first_leaf());
  const std::uint64_t old = off.map().table.get(off.map().root).bits;
  std::memcpy(leaf + offsetof(H, old_ref), &old, sizeof old);
  EXPECT_NE(text_of(audit(off.map())).find("although versions are off"), std::string::npos);
  const std::uint64_t none = 0;
  std::memcpy(leaf + offsetof(H, old_ref), &none, sizeof none);
  EXPECT_EQ(text_of(audit(off.map())), "");
}

TEST_F(AuditTest, AccountsForTheBuffersOfAllMaps) {
  auto other = MapCore::create(tree_.store(), 2, "other", {.node_bytes = 8192});
  ASSERT_TRUE(other);
  EXPECT_EQ(text_of(audit_store(tree_.store())), "");
  const auto lost = *tree_.store().pool.allocate((*other)->node_class);
  EXPECT_EQ(text_of(audit(tree_.map())), "") << "one of several maps cannot tell";
  EXPECT_NE(text_of(audit_store(tree_.store())).find("are handed out, and maps have"),
            std::string::npos);
  tree_.store().pool.release(lost, (*other)->node_class);
  other->reset();
  EXPECT_EQ(text_of(audit_store(tree_.store())), "");
}

TEST_F(AuditTest, StopsAfterSoManyComplaints) {
  const std::uint64_t one = 1;
  std::memcpy(leaf_ + offsetof(H, self_ref), &one, sizeof one);
  tree_.map().items.add(0, 5);
  EXPECT_EQ(audit(tree_.map(), 1).size(), 1u);
  EXPECT_EQ(audit(tree_.map(), 20).size(), 2u);
}

// Any single changed byte of a node must be found, or be one of the few that readers never look at.
TEST_F(AuditTest, FindsNearlyEveryChangedByte) {
  // Versions in the past, predecessors that are gone, neighbours; what no reference carries of the
  // generation, and the lock's sequence.
  const auto may_differ = [](std::uint32_t at) {
    return at == 7 || (at >= offsetof(H, lock) && at < offsetof(H, lock) + 4) ||
           (at >= offsetof(H, created) && at < offsetof(H, superseded)) ||
           (at >= offsetof(H, old_ref) && at < offsetof(H, successor_ref)) ||
           (at >= offsetof(H, left) && at < offsetof(H, low_bytes)) ||
           (at >= offsetof(H, old2_low_key_prefix) && at < offsetof(H, self_ref));
  };
  std::vector<std::uint32_t> unnoticed;
  for (std::uint32_t at = 0; at < g().node_bytes; ++at) {
    leaf_[at] ^= std::byte{0x20};
    if (audit(tree_.map(), 1).empty()) unnoticed.push_back(at);
    leaf_[at] ^= std::byte{0x20};
  }
  const std::uint32_t log_end = leaf().log_end();
  std::uint32_t in_items = 0;
  for (const std::uint32_t at : unnoticed) {
    EXPECT_TRUE(at >= sizeof(H) || may_differ(at)) << "byte " << at << " of the header";
    EXPECT_FALSE(at >= sizeof(H) && at < g().starts_begin + g().chunks_max) << "byte " << at;
    if (at >= g().sorted_begin && at < log_end) ++in_items;
  }
  EXPECT_LT(in_items, 400u) << "values, and little else";
}

TEST(Audit, IsContentWithEveryGeometryAndHistory) {
  base::Random random(base::seed_from_environment(11));
  for (const MapOptions& options : all_geometries()) {
    SCOPED_TRACE(std::to_string(options.node_bytes) + "/" + std::to_string(options.log_bytes));
    TreeFixture tree(options);
    for (int i = 0; i < 1500; ++i) {
      const std::string key = random_key(random, tree.map().geometry.key_bytes_max);
      if (random.below(20) == 0) {
        std::map<std::string, std::optional<std::string>> writes;
        for (std::uint64_t n = random.below(200); writes.size() <= n;) {
          auto& value = writes[random_key(random, tree.map().geometry.key_bytes_max)];
          if (random.below(3) != 0) value = std::string(random.below(20), 'w');
        }
        tree.write_all(writes);
      } else if (random.below(3) == 0) {
        tree.erase(key);
      } else {
        tree.put(key, std::string(random.below(40) == 0 ? 900 : random.below(20), 'v'));
      }
      if (i % 100 == 0) {
        ASSERT_EQ(text_of(audit(tree.map())), "") << "after " << i;
      }
    }
    ASSERT_EQ(text_of(audit(tree.map())), "");
  }
}

}  // namespace
}  // namespace espalier::tree
