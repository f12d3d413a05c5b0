// SPDX-License-Identifier: Apache-2.0
// Sequencers: named counters that hand out numbers, each once [DPU §6.2].
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "espalier/error.hpp"

namespace espalier::base {

/// The sequencers of one store. Thread: any.
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

}  // namespace espalier::base
