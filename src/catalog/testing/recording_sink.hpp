// SPDX-License-Identifier: Apache-2.0
// For tests: a sink that keeps all records in the order in which they were handed over, and counts
// rooms, so that a test sees one that is lost or comes back twice. What is handed over is durable
// at once, or when the test says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/durable_mark.hpp"
#include "catalog/redo_record.hpp"
#include "catalog/redo_sink.hpp"

namespace espalier::catalog {

class RecordingSink final : public RedoSink {
 public:
  enum class Durable : std::uint8_t { at_once, by_hand };
  explicit RecordingSink(Durable durable = Durable::at_once)
      : mark_(durable == Durable::at_once ? base::DurableMark::kAll : 0) {}
  RecordingSink(const RecordingSink&) = delete;
  RecordingSink& operator=(const RecordingSink&) = delete;
  ~RecordingSink() {
    ESPALIER_ASSERT(rooms_ == 0);  // each was handed over or given back
    while (first_ != nullptr) destroy(std::exchange(first_, first_->next));
  }

  Result<std::span<std::byte>> reserve(std::size_t bytes) noexcept override {
    if (when_reserved) when_reserved();
    const std::lock_guard lock(mutex_);
    if (refuses_) return fail(Code::busy);
    auto* const front = new (::operator new(sizeof(Front) + bytes)) Front{nullptr, bytes};
    ++rooms_;
    ++reserved_;
    return std::span(reinterpret_cast<std::byte*>(front + 1), bytes);
  }
  std::uint64_t hand_over(std::span<std::byte> record) noexcept override {
    if (when_handed_over) when_handed_over(text_of(record));
    const std::lock_guard lock(mutex_);
    --rooms_;
    Front* const front = front_of(record);
    *last_ = front;
    last_ = &front->next;
    return ++count_;
  }
  [[nodiscard]] base::DurableMark& mark() noexcept override { return mark_; }
  [[nodiscard]] std::string failure() const override { return "a test has it fail"; }
  [[nodiscard]] std::uint64_t handed_over() const noexcept override { return count(); }
  void give_back(std::span<std::byte> room) noexcept override {
    const std::lock_guard lock(mutex_);
    --rooms_;
    destroy(front_of(room));
  }

  /// By hand: all records up to here are durable, or all that are there.
  void make_durable(std::uint64_t sequence) { mark_.rise(sequence); }
  void make_durable() { make_durable(count()); }
  /// By hand: none of the others ever is, and there is no more room.
  void fail_all() {
    refuse(true);
    mark_.fail();
  }

  /// From now on there is no room, or there is some again.
  void refuse(bool refuses) {
    const std::lock_guard lock(mutex_);
    refuses_ = refuses;
  }
  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  /// Rooms that were reserved since it was made.
  [[nodiscard]] std::size_t reserved() const {
    const std::lock_guard lock(mutex_);
    return reserved_;
  }
  /// Rooms that were neither handed over nor given back.
  [[nodiscard]] std::size_t rooms() const {
    const std::lock_guard lock(mutex_);
    return rooms_;
  }
  /// All records so far, in order. They stay where they are, aligned to 8, as long as the sink.
  [[nodiscard]] std::vector<std::string_view> records() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string_view> all;
    for (Front* at = first_; at != nullptr; at = at->next) {
      all.push_back(text_of({reinterpret_cast<std::byte*>(at + 1), at->bytes}));
    }
    return all;
  }

  /// What else a test does before there is room for one. Set before there are others.
  std::function<void()> when_reserved;
  /// What else a test does when a record comes, on the thread that hands it over. Set before there
  /// are others.
  std::function<void(std::string_view)> when_handed_over;

 private:
  struct Front {
    Front* next;
    std::size_t bytes;
  };
  static Front* front_of(std::span<std::byte> room) {
    return reinterpret_cast<Front*>(room.data()) - 1;
  }
  static void destroy(Front* front) { ::operator delete(front); }
  static std::string_view text_of(std::span<std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  base::DurableMark mark_;
  mutable std::mutex mutex_;  // guards all below
  Front* first_ = nullptr;
  Front** last_ = &first_;
  std::size_t count_ = 0;
  std::size_t rooms_ = 0;
  std::size_t reserved_ = 0;
  bool refuses_ = false;
};

/// What a kind's test of golden bytes compares: two digits for each byte, a blank after eight.
inline std::string hex_of(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i != 0 && i % 8 == 0) text += ' ';
    text += kDigits[static_cast<unsigned char>(bytes[i]) >> 4];
    text += kDigits[static_cast<unsigned char>(bytes[i]) & 15];
  }
  return text;
}

}  // namespace espalier::catalog
