// SPDX-License-Identifier: Apache-2.0
// How many seeds the tests of simulated networks and disks take: each its own number, or
// ESPALIER_SEEDS; then they also report their progress, and how often rare events occurred. With
// ESPALIER_FEW_SEEDS=N it is one Nth of a test's own number, and as many more, up to that number,
// as it takes until each rare event has occurred.
//
// Thread: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace espalier::base {

class Seeds {
 public:
  /// `share`: of its own number it takes one in so many in any case, as under a sanitizer.
  explicit Seeds(std::uint64_t usually, std::uint64_t share = 1) {
    const char* const text = std::getenv("ESPALIER_SEEDS");
    given_ = text != nullptr;
    most_ = given_ ? std::strtoull(text, nullptr, 0) : usually;
    const char* const few = std::getenv("ESPALIER_FEW_SEEDS");
    if (few != nullptr) share *= std::max<std::uint64_t>(std::strtoull(few, nullptr, 0), 1);
    count_ = given_ ? most_ : std::max<std::uint64_t>(usually / share, 1);
  }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Whether there is to be another one, where what seldom happens has happened, or has not.
  [[nodiscard]] bool more(bool has_happened) const {
    return done_ < count_ || (done_ < most_ && !has_happened);
  }
  /// How many are done.
  [[nodiscard]] std::uint64_t ended() const { return done_; }
  /// One more is done.
  void done() {
    ++done_;
    if (!given_ || done_ * 10 / count_ == (done_ - 1) * 10 / count_) return;
    std::fprintf(stderr, "%12llu of %llu seeds\n", static_cast<unsigned long long>(done_),
                 static_cast<unsigned long long>(count_));
  }
  /// Something rare has happened so often.
  void report(const char* what, std::uint64_t times) const {
    if (given_) std::fprintf(stderr, "%12llu %s\n", static_cast<unsigned long long>(times), what);
  }

 private:
  std::uint64_t count_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t most_ = 0;
  bool given_ = false;
};

}  // namespace espalier::base
