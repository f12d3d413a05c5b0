// SPDX-License-Identifier: Apache-2.0
// Handlers between a caller and one shard, which detect whether that shard's answer is complete.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shards/shard_nodes.hpp"

namespace espalier::client {

/// Adds the shard's number to a lost connection.
class Naming final : public Handler {
 public:
  Naming(Handler& to, std::size_t shard) : to_(to), shard_(shard) {}
  void done(const Completion& completion) override {
    if (completion.ok) return to_.done(completion);
    Completion said = completion;
    said.error = error_of_shard(said.error, shard_);
    to_.done(said);
  }
  bool items(std::uint64_t tag, std::span<const Item> items) override {
    return to_.items(tag, items);
  }

 private:
  Handler& to_;
  const std::size_t shard_;
};

/// Withholds an answer that the shard map is outdated, if nothing was delivered before.
class OutdatedCatch final : public Handler {
 public:
  explicit OutdatedCatch(Handler& to) : to_(to) {}
  void done(const Completion& completion) override {
    if (!completion.ok && !delivered_ && is_outdated(completion.error)) {
      kept_ = completion;
      kept_->key = kept_->value = {};
      return;
    }
    to_.done(completion);
  }
  bool items(std::uint64_t tag, std::span<const Item> items) override {
    delivered_ = true;
    return to_.items(tag, items);
  }
  [[nodiscard]] bool delivered() const { return delivered_; }
  [[nodiscard]] const std::optional<Completion>& kept() const { return kept_; }
  /// There is no newer shard map: delivers the answer.
  void give_up() { to_.done(*kept_); }
  void forget() { kept_.reset(); }

 private:
  Handler& to_;
  bool delivered_ = false;
  std::optional<Completion> kept_;
};

/// Withholds an empty answer of a floor: the floor may lie further left.
class FloorCatch final : public Handler {
 public:
  explicit FloorCatch(Handler& to) : to_(to) {}
  void done(const Completion& completion) override {
    goes_left_ = completion.ok && !completion.found;
    if (!goes_left_) to_.done(completion);
  }
  [[nodiscard]] bool goes_left() const { return goes_left_; }

 private:
  Handler& to_;
  bool goes_left_ = false;
};

/// For a scan from a floor: delivers the items if the first one is at or below `low`; else stops
/// the scan, because the floor lies further left.
class FromFloorCatch final : public Handler {
 public:
  FromFloorCatch(Handler& to, std::string_view low) : to_(to), low_(low) {}
  void done(const Completion& completion) override {
    if (begins_ || !completion.ok) return to_.done(completion);
    goes_left_ = true;
  }
  bool items(std::uint64_t tag, std::span<const Item> items) override {
    if (!begins_ && !items.empty() && items.front().key <= low_) begins_ = true;
    return begins_ && to_.items(tag, items);
  }
  [[nodiscard]] bool goes_left() const { return goes_left_; }

 private:
  Handler& to_;
  const std::string_view low_;
  bool begins_ = false;
  bool goes_left_ = false;
};

/// Buffers items until it is known whether they are all; stops the scan at large ones.
class Keeping final : public Handler {
 public:
  void done(const Completion& completion) override { completion_ = completion; }
  bool items(std::uint64_t, std::span<const Item> items) override {
    for (const Item& item : items) {
      bytes_ += item.key.size() + item.value.size();
      if (bytes_ > kBytesMax) return false;
      kept_.push_back({std::string(item.key), std::string(item.value), item.version});
    }
    return true;
  }
  [[nodiscard]] const Completion& completion() const { return completion_; }
  [[nodiscard]] std::size_t size() const { return kept_.size(); }
  /// Delivers the items, and the completion.
  void deliver(std::uint64_t tag, Handler& to) const {
    std::vector<Item> items;
    items.reserve(kept_.size());
    for (const FoundItem& item : kept_) items.push_back({item.key, item.value, item.version});
    if (!items.empty()) static_cast<void>(to.items(tag, items));
    to.done(completion_);
  }

 private:
  static constexpr std::size_t kBytesMax = std::size_t{1} << 20;

  std::vector<FoundItem> kept_;
  std::size_t bytes_ = 0;
  Completion completion_;
};

}  // namespace espalier::client
