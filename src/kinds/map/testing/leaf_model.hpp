// SPDX-License-Identifier: Apache-2.0
// A leaf built by hand, with entries in its log, and a model of its content at each version.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kinds/map/testing/tree_fixture.hpp"
#include "kinds/map/write/leaf_write.hpp"

namespace espalier::tree {

class LeafModel {
 public:
  using Items = std::map<std::string, std::string>;
  static constexpr std::uint64_t kCreated = 10;

  explicit LeafModel(const MapOptions& options, const std::string& prefix = "")
      : geometry_(Geometry::of(options)), buffer_(geometry_), prefix_(prefix) {
    // The range of all keys that begin with `prefix`; the fences share the prefix and nothing else.
    low_ = prefix.empty() ? "" : prefix + '\0';
    high_ = prefix.empty() ? "" : prefix + '\xFF';
  }

  /// A random key within the fences.
  [[nodiscard]] std::string key(base::Random& random) const {
    const auto room = static_cast<std::uint32_t>(geometry_.key_bytes_max - prefix_.size() - 1);
    return prefix_ + (prefix_.empty() ? "" : "m") + random_key(random, room);
  }
  [[nodiscard]] std::string value(base::Random& random) const {
    const std::uint64_t most = random.below(8) == 0 ? geometry_.inline_value_bytes_max : 12;
    return std::string(random.below(most + 1), static_cast<char>('0' + random.below(10)));
  }

  /// The model's placeholder for an out-of-line value: append() writes it as such.
  [[nodiscard]] static std::string stored_value() {
    return std::string(sizeof(wire::ValueRef), '\x01');
  }

  /// Lays out random items that fill `percent` of the room.
  void build(base::Random& random, std::uint32_t percent) {
    Items items;
    std::uint64_t bytes = 0;
    const std::uint64_t room = std::uint64_t{leaf_room(geometry_, low_, high_)} * percent / 100;
    for (int tries = 0; tries < 5000; ++tries) {
      const std::string one = key(random);
      const std::string with = value(random);
      bytes += items.contains(one) ? 0 : placed_bytes(make_record(one, with, false), geometry_);
      if (bytes > room) break;
      items.emplace(one, with);
    }
    build(items);
  }
  void build(const Items& items) {
    std::vector<Record> records;
    for (const auto& [one, with] : items) records.push_back(make_record(one, with, false));
    NodeFrame frame;
    frame.map_id = 1;
    frame.low = low_;
    frame.high = high_;
    build_leaf(buffer_.data(), geometry_, records, frame);
    go_live(buffer_.data(), kCreated);
    history_ = {{kCreated, items}};
  }

  /// Appends to the log under the next version; false if it is full.
  bool append(const std::string& one, const std::optional<std::string>& with) {
    SearchKey search;
    search.assign(one);
    WriteIntent intent;
    intent.op = with ? Op::put : Op::erase;
    intent.key = &search;
    if (with) intent.value = *with;
    intent.out_of_line = with == stored_value();
    const NodeView leaf = view();
    if (!log_has_room(leaf, 1, log_bytes(intent))) return false;
    NewestState state;
    state.position = lower_bound(leaf, search, probe_leaf(leaf, search, best_search_kit()));
    const wire::LockWord lock = leaf.lock_word();
    std::byte* at =
        append_entry(buffer_.data(), geometry_, intent, state, lock.entries(), lock.units());
    const std::uint64_t version = history_.rbegin()->first + 2;
    publish_entry(at, version);
    unlock(buffer_.data(), lock.entries() + 1,
           lock.units() + log_bytes(intent) / wire::kLogUnitBytes);
    Items items = newest();
    if (with) {
      items[one] = *with;
    } else {
      items.erase(one);
    }
    history_.emplace(version, std::move(items));
    return true;
  }
  /// Appends random writes: half of them to existing keys, a third of those erases.
  void append_random(base::Random& random, int count) {
    for (int i = 0; i < count; ++i) {
      std::string one = key(random);
      if (random.below(2) == 0 && !newest().empty()) {
        auto at = newest().begin();
        std::advance(at, static_cast<std::ptrdiff_t>(random.below(newest().size())));
        one = at->first;
      }
      const bool erase = random.below(3) == 0 && newest().contains(one);
      if (!append(one, erase ? std::nullopt : std::optional(value(random)))) return;
    }
  }

  [[nodiscard]] NodeView view() const { return buffer_.view(); }
  [[nodiscard]] std::byte* bytes() const { return buffer_.data(); }
  [[nodiscard]] const Geometry& geometry() const { return geometry_; }
  [[nodiscard]] const Items& newest() const { return history_.rbegin()->second; }
  /// The items at this version. Requires: version >= kCreated.
  [[nodiscard]] const Items& at(std::uint64_t version) const {
    return std::prev(history_.upper_bound(version))->second;
  }
  [[nodiscard]] std::uint64_t newest_version() const { return history_.rbegin()->first; }
  [[nodiscard]] const Items& sorted() const { return history_.begin()->second; }
  [[nodiscard]] const std::string& low() const { return low_; }
  [[nodiscard]] const std::string& high() const { return high_; }

 private:
  Geometry geometry_;
  NodeBuffer buffer_;
  std::string prefix_;
  std::string low_;
  std::string high_;
  std::map<std::uint64_t, Items> history_;
};

/// Leaves of all geometries, with and without a shared prefix, of several fills and logs.
template <class Check>
void for_many_leaves(base::Random& random, const Check& check) {
  for (const MapOptions& options : all_geometries()) {
    for (const char* prefix : {"", "p", "sharedprefix"}) {
      for (const std::uint32_t percent : {0u, 5u, 50u, 90u}) {
        SCOPED_TRACE(std::to_string(options.node_bytes) + " bytes, log " +
                     std::to_string(options.log_bytes) + ", prefix '" + prefix + "', " +
                     std::to_string(percent) + " %");
        LeafModel leaf(options, prefix);
        leaf.build(random, percent);
        leaf.append_random(random, static_cast<int>(random.below(70)));
        check(leaf);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace espalier::tree
