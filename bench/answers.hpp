// SPDX-License-Identifier: Apache-2.0
// Hashes the answers of a target, so that the work cannot be optimised away, and so that targets
// can be compared.
//
// Two sums over all operations, both independent of the order in which answers arrive:
//   exact  every byte of every key and value that was read, the number of items, and the outcome;
//   shape  outcome, length of values if updates keep it, and as many items of a scan as no
//          concurrent insert changes.
// Requests of one window may run concurrently when many are in flight, and then a read may see the
// value before or after an update of the same window; so with writes in flight only `shape` is the
// same for all targets. The requests are made to ensure that: see request_list.hpp.
//
// All targets call the same code. Cost: about 1 ns per item of 16 + 16 bytes.
//
// Thread: one for each thread.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "bench/mix.hpp"

namespace espalier::bench {

/// Set in the tag of a get that is the first half of a read-modify-write; Request::value is the
/// value of its second half.
inline constexpr std::uint64_t kReadModifyWriteTag = std::uint64_t{1} << 63;

class alignas(64) Answers {
 public:
  /// `certain_items`: a scan always returns at least so many, however it interleaves with inserts.
  /// `fixed_values`: an update keeps the length of a value.
  explicit Answers(std::uint64_t certain_items = ~std::uint64_t{0}, bool fixed_values = true)
      : certain_items_(certain_items), fixed_values_(fixed_values) {}

  void value(std::uint64_t tag, std::string_view value) {
    exact_ += weight(tag) * bytes_hash(value);
    shape_ += weight(tag) * ((fixed_values_ ? value.size() : 0) + 8);
  }
  void missing(std::uint64_t tag) { add_both(tag, 1); }
  void written(std::uint64_t tag, bool applied) { add_both(tag, applied ? 2 : 3); }

  /// `hash_sum`: sum of item_hash over some items of a scan.
  void items(std::uint64_t tag, std::uint64_t hash_sum) { exact_ += weight(tag) * hash_sum; }
  void scan_done(std::uint64_t tag, std::uint64_t count) {
    exact_ += weight(tag) * count;
    shape_ += weight(tag) * (std::min(count, certain_items_) + 8);
    scanned_items_ += count;
  }

  /// An operation failed; the benchmark will report that and fail.
  void fail(std::string message) {
    if (errors_++ == 0) first_error_ = std::move(message);
  }

  void add(const Answers& other) {
    exact_ += other.exact_;
    shape_ += other.shape_;
    scanned_items_ += other.scanned_items_;
    if (errors_ == 0) first_error_ = other.first_error_;
    errors_ += other.errors_;
  }

  [[nodiscard]] std::uint64_t exact() const { return exact_; }
  [[nodiscard]] std::uint64_t shape() const { return shape_; }
  [[nodiscard]] std::uint64_t scanned_items() const { return scanned_items_; }
  [[nodiscard]] std::uint64_t errors() const { return errors_; }
  [[nodiscard]] const std::string& first_error() const { return first_error_; }

 private:
  // Odd, so that no answer is lost in the product.
  static std::uint64_t weight(std::uint64_t tag) { return (tag * 2 + 1) * kGolden; }
  void add_both(std::uint64_t tag, std::uint64_t outcome) {
    exact_ += weight(tag) * outcome;
    shape_ += weight(tag) * outcome;
  }

  std::uint64_t exact_ = 0;
  std::uint64_t shape_ = 0;
  std::uint64_t certain_items_;
  bool fixed_values_;
  std::uint64_t scanned_items_ = 0;
  std::uint64_t errors_ = 0;
  std::string first_error_;
};

}  // namespace espalier::bench
