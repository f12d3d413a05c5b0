// SPDX-License-Identifier: Apache-2.0
// The structure of the example: a FIFO queue of byte strings. Each element has a number, one above
// that of the element before it.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.hpp"
#include "espalier/error.hpp"
#include "wire/call_codec.hpp"

namespace espalier::example {

struct QueueNumbers {
  std::uint64_t pushed = 0;  ///< in total; also the number of the next
  std::uint64_t popped = 0;
  std::uint64_t bytes = 0;  ///< of its entries
};

class Queue final : public catalog::Object {
 public:
  static constexpr ObjectKind kKind{kOwnKinds};
  /// Most bytes that wait in one queue.
  static constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 20;
  /// Overhead of each waiting entry, besides its own bytes.
  static constexpr std::uint64_t kOverheadBytes = sizeof(wire::OwnBytes);

  explicit Queue(std::uint32_t id) : id_(id) {}

  struct Entry {
    std::uint64_t number = 0;
    wire::OwnBytes bytes;
  };

  [[nodiscard]] std::uint32_t id() const { return id_; }
  /// Returns the entry's number. Errors: not_found (the queue was dropped); out_of_memory (too many
  /// bytes wait already).
  Result<std::uint64_t> push(std::string_view bytes);
  /// The oldest entry; nothing: the queue is empty. Errors: not_found (it was dropped).
  Result<std::optional<Entry>> pop();
  /// Errors: not_found (it was dropped).
  [[nodiscard]] Result<QueueNumbers> known_numbers() const;
  /// What is wrong with it; empty: nothing.
  [[nodiscard]] std::vector<std::string> audit() const;

  void set_dropped() override;
  [[nodiscard]] std::string_view kind_name() const override { return "queue"; }
  [[nodiscard]] std::string description() const override { return {}; }
  [[nodiscard]] catalog::ObjectNumbers numbers() const override;
  void add_samples(catalog::SampleList& to) const override;

 private:
  [[nodiscard]] QueueNumbers count() const;

  const std::uint32_t id_;
  mutable std::mutex mutex_;  // guards all below
  std::deque<wire::OwnBytes> waiting_;
  QueueNumbers numbers_;
  bool dropped_ = false;
};

}  // namespace espalier::example
