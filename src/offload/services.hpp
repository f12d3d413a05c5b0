// SPDX-License-Identifier: Apache-2.0
// What all engines of a node share.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include "offload/message_reader.hpp"
#include "offload/registry.hpp"
#include "tree/write/catalog.hpp"
#include "tree/write/map_core.hpp"

namespace espalier::offload {

/// A thread for what would keep an engine too long: system calls, allocating, freeing much.
/// Thread: any.
class Helper {
 public:
  Helper();
  /// Does all that was asked for before it ends.
  ~Helper();
  void run(std::function<void()> work);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> queue_;  // guarded by mutex_, and so is the next
  bool ending_ = false;
  std::thread thread_;
};

/// Named counters that hand out numbers, each once. Thread: any.
class Sequencers {
 public:
  static constexpr std::size_t kMost = 65536;

  /// Takes `count` numbers in a row; returns the first. A sequencer begins at 0.
  /// Errors: out_of_memory (there are too many sequencers).
  Result<std::uint64_t> take(std::string_view name, std::uint32_t count);

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  std::mutex mutex_;
  std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> next_;
};

/// Where the numbers of the whole node come from, which engines do not know. Thread: any.
class NumbersSource {
 public:
  /// `tell` gathers them, in the bytes of wire/node_numbers.hpp; null: nobody does. What was set
  /// before is not running any more when this returns.
  void set(std::function<std::string()> text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }
  /// The numbers; nothing if nobody tells them.
  [[nodiscard]] std::optional<std::string> text() const {
    const std::lock_guard lock(mutex_);
    return text_ ? std::optional(text_()) : std::nullopt;
  }

 private:
  mutable std::mutex mutex_;  // held while they are gathered
  std::function<std::string()> text_;
};

struct Services {
  /// `own`: offloads beside those of the registry, see offload_table_with().
  Services(tree::StoreCore& store_in, tree::Catalog& catalog_in, std::uint64_t message_bytes_max,
           std::span<const Offload> own = {})
      : store(store_in),
        catalog(catalog_in),
        budget(message_bytes_max),
        offloads(offload_table_with(own)) {}

  tree::StoreCore& store;
  tree::Catalog& catalog;
  MessageBudget budget;
  /// How many messages were refused, for the budget had too little left.
  std::atomic<std::uint64_t> refused_messages{0};
  /// How many requests wait until it has enough for their answers.
  std::atomic<std::uint64_t> waiting_for_memory{0};
  /// Sessions over fabrics that began: the last one's number, by which operators know it.
  std::atomic<std::uint64_t> sessions_begun{0};
  const OffloadTable offloads;
  Sequencers sequencers;
  NumbersSource numbers;
  Helper helper;
  /// Barriers of those who go to sleep are heavy, so that others need only light ones.
  bool asymmetric = false;
};

}  // namespace espalier::offload
