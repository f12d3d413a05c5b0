// SPDX-License-Identifier: Apache-2.0
// A pattern compiled by Hyperscan, in builds and on processors that have it.
//
// Thread: any. Scratch memory for searches is per thread: one for all patterns, as large as the
// largest one needs.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct hs_database;

namespace espalier::regex {

class HyperscanPattern {
 public:
  /// A larger one is left to RE2.
  static constexpr std::size_t kBytesMax = std::size_t{1} << 20;

  /// Nullopt: no Hyperscan, or it does not support the pattern, or it needs too much memory.
  /// Cost: some tens to hundreds of microseconds.
  static std::optional<HyperscanPattern> compile(const std::string& pattern);

  /// Whether it matches anywhere in the text; nullopt: out of memory.
  [[nodiscard]] std::optional<bool> search(std::string_view text) const;
  /// Prepares the calling thread for searches. False: no memory, or the thread is ending.
  [[nodiscard]] bool prepare() const;

 private:
  struct Free {
    void operator()(hs_database* database) const;
  };
  explicit HyperscanPattern(hs_database* database) : database_(database) {}

  std::unique_ptr<hs_database, Free> database_;
};

}  // namespace espalier::regex
