// SPDX-License-Identifier: Apache-2.0
// How many seeds the tests of simulated networks and disks take: each its own number, or
// ESPALIER_SEEDS; then they also say how far they are, and how often they have seen what seldom
// happens. With ESPALIER_FEW_SEEDS=N it is one Nth of a test's own number, and what seldom happens
// need not have happened.
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
  explicit Seeds(std::uint64_t usually) {
    const char* const text = std::getenv("ESPALIER_SEEDS");
    given_ = text != nullptr;
    count_ = given_ ? std::strtoull(text, nullptr, 0) : usually;
    const char* const few = std::getenv("ESPALIER_FEW_SEEDS");
    if (given_ || few == nullptr) return;
    const std::uint64_t share = std::max<std::uint64_t>(std::strtoull(few, nullptr, 0), 1);
    count_ = std::max<std::uint64_t>(usually / share, 1);
    enough_ = share == 1;
  }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// Whether there are so many that what seldom happens must have happened.
  [[nodiscard]] bool enough() const { return enough_; }
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
  std::uint64_t count_;
  std::uint64_t done_ = 0;
  bool given_ = false;
  bool enough_ = true;
};

}  // namespace espalier::base
