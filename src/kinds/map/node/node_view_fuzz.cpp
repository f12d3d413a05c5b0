// SPDX-License-Identifier: Apache-2.0
// Fuzzes everything that reads a node with arbitrary bytes: nothing reads outside the node, and
// every loop terminates. The node lies in an allocation of exactly its size.
//
// Input: node size, log size, kind, a key, a read version, then the node's bytes; missing bytes are
// zeros. The bytes do not change during a run.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "kinds/map/node/interior_builder.hpp"
#include "kinds/map/node/leaf_scan.hpp"
#include "kinds/map/write/leaf_write.hpp"
#include "kinds/map/write/log_merge.hpp"

namespace espalier::tree {
namespace {

/// Reads the input from its front; zeros follow its end.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}
  template <class T>
  T number() {
    T value{};
    copy(&value, sizeof value);
    return value;
  }
  void copy(void* to, std::size_t bytes) {
    const std::size_t taken = std::min(bytes, left_);
    if (taken != 0) std::memcpy(to, at_, taken);
    at_ += taken;
    left_ -= taken;
  }

 private:
  const std::uint8_t* at_;
  std::size_t left_;
};

/// Memory of exactly one node, aligned as buffers are.
class Node {
 public:
  Node(Input& input, const Geometry& g, std::uint8_t kind)
      : bytes_(new(std::align_val_t{64}) std::byte[g.node_bytes]{}) {
    input.copy(bytes_, g.node_bytes);
    // Most random bytes have no valid kind, and dispatch by kind is not under test.
    if (kind % 4 != 3) {
      const auto chosen = kind % 2 == 0 ? wire::NodeKind::leaf : wire::NodeKind::interior;
      std::memcpy(bytes_ + offsetof(wire::NodeHeader, kind), &chosen, sizeof chosen);
    }
  }
  ~Node() { ::operator delete[](bytes_, std::align_val_t{64}); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  [[nodiscard]] const std::byte* data() const { return bytes_; }

 private:
  std::byte* bytes_;
};

void check(bool holds) {
  if (!holds) std::abort();
}

/// Reads all bytes of a text, so that a sanitizer checks them.
std::uint64_t touch(std::string_view text) {
  std::uint64_t sum = 0;
  for (const char byte : text) sum += static_cast<unsigned char>(byte);
  return sum;
}

std::uint64_t read_header(const NodeView& node, const SearchKey& key) {
  std::uint64_t sum = touch(node.low_fence()) + touch(node.high_fence());
  sum += node.covers(key) ? 1 : 0;
  sum += node.covers_descending(key) ? 1 : 0;
  const NodeHead head = NodeHead::read(node.bytes());
  sum += head.scaled(key);
  for (const std::uint64_t version : {std::uint64_t{0}, node.created(), kNewest}) {
    for (const bool versions : {false, true}) {
      sum += static_cast<std::uint64_t>(head.current_at(version, versions));
    }
  }
  return sum;
}

std::uint64_t search_leaf(const NodeView& leaf, const SearchKey& key, std::uint64_t version,
                          const SearchKit& kit) {
  const LeafProbe probe = probe_leaf(leaf, key, kit);
  const Position position = lower_bound(leaf, key, probe);
  std::uint64_t sum = position.offset;
  SortedItem item;
  if (key.bytes() != 0 && find_sorted(leaf, key, probe, item)) {
    check(item.key == key.view());
    sum += touch({item.value, item.value_bytes});
  }
  if (const auto entry = find_in_log(leaf, key, probe.log_matches, version)) {
    check(entry->key == key.view() && entry->version <= version);
    sum += touch({entry->value, entry->value_bytes});
  }
  return sum;
}

/// A scan, from its floor if there is one, delivers at most as many items as the sorted block and
/// the log have, and terminates.
std::uint64_t scan_leaf(const NodeView& leaf, const SearchKey* low, const SearchKey* high,
                        std::uint64_t version, const SearchKit& kit) {
  std::uint64_t sum = 0;
  Item items[64];
  const auto few = static_cast<std::uint32_t>(version % (LeafScan::kFew + 1));
  if (low != nullptr && LeafScan::take_few(leaf, *low, probe_leaf(leaf, *low, kit), few, items)) {
    for (std::uint32_t i = 0; i < few; ++i) sum += touch(items[i].key) + touch(items[i].value);
  }
  for (const bool backward : {false, true}) {
    LeafScan scan;
    if (low == nullptr || backward || !scan.begin_at_floor(leaf, version, kit, *low, high)) {
      scan.begin(leaf, version, kit, low, high);
    }
    std::uint64_t out_of_line = 0;
    std::uint32_t total = 0;
    while (const std::uint32_t count = backward ? scan.take_back(items, 7, out_of_line)
                                                : scan.take(items, 64, out_of_line)) {
      for (std::uint32_t i = 0; i < count; ++i) sum += touch(items[i].key) + touch(items[i].value);
      total += count;
      check(total <= leaf.geometry().node_bytes);
    }
  }
  return sum;
}

std::uint64_t read_leaf(const NodeView& leaf, const SearchKey& key, std::uint64_t version,
                        const SearchKit& kit) {
  std::uint64_t sum = search_leaf(leaf, key, version, kit);
  sum += scan_leaf(leaf, nullptr, nullptr, version, kit);
  sum += scan_leaf(leaf, &key, nullptr, version, kit);
  sum += scan_leaf(leaf, &key, &key, version, kit);
  sum += scan_leaf(leaf, nullptr, &key, version, kit);
  std::uint8_t order[wire::kLogSlotsMax];
  sort_log(leaf, leaf.log_entries(leaf.lock_word()), order);
  std::vector<Record> records;
  gather_newest(leaf, records);
  for (const Record& record : records) {
    sum += touch(record.key_view()) + touch({record.value, record.value_bytes});
    if (record.encoded != nullptr) sum += touch({record.encoded, record.encoded_bytes});
  }
  WriteIntent intent;
  intent.key = &key;
  NewestState state;
  state.position = lower_bound(leaf, key, probe_leaf(leaf, key, kit));
  sum += LogMerge(leaf, intent, state).bytes();
  return sum;
}

std::uint64_t read_interior(const NodeView& node, const SearchKey& key, const SearchKit& kit) {
  std::uint64_t sum = scale_among_children(node, NodeHead::read(node.bytes()), key).scaled;
  sum += node.child(choose_child(node, key, kit));
  sum += node.child(choose_child_descending(node, key, kit));
  std::vector<Child> children;
  gather_children(node, children);
  for (const Child& child : children) sum += touch(child.separator) + child.lid;
  return sum;
}

}  // namespace
}  // namespace espalier::tree

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  using namespace espalier::tree;
  Input input(data, size);
  const auto shape = input.number<std::uint8_t>();
  MapOptions options;
  options.node_bytes = wire::kNodeBytesMin << (shape % 8);
  options.log_bytes = shape / 8 * 64;
  const Geometry g = Geometry::of(options);
  const auto kind = input.number<std::uint8_t>();
  char text[wire::kKeyBytesMax + 1];
  const std::uint32_t key_bytes = input.number<std::uint8_t>() * 2u % (g.key_bytes_max + 1);
  std::memset(text, 'k', sizeof text);
  input.copy(text, std::min(key_bytes, 24u));
  SearchKey key;
  key.assign({text, key_bytes});
  const auto version = input.number<std::uint64_t>() % wire::kLive;
  const Node node(input, g, kind);
  const NodeView view(node.data(), g);
  std::uint64_t sum = read_header(view, key);
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    const SearchKit* kit = search_kit(isa);
    if (kit == nullptr) continue;
    sum += read_leaf(view, key, version, *kit);
    sum += read_interior(view, key, *kit);
  }
  check(sum != ~std::uint64_t{0});  // keeps the reads from being optimised away
  return 0;
}
