// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <tuple>

#include "bench/ycsb_options.hpp"

namespace espalier::bench {

/// Caches the keys of the last point, since most points share them. Thread: one at a time.
class KeyCache {
 public:
  /// Errors: as make_keys.
  std::shared_ptr<const KeySet> get(const YcsbOptions& options) {
    const Key key{options.key_source, options.key_file, options.keys, options.key_bytes,
                  options.seed};
    if (keys_ == nullptr || key != key_) {
      keys_.reset();
      keys_ = make_keys(options);
      key_ = key;
    }
    return keys_;
  }

 private:
  using Key = std::tuple<KeySource, std::string, std::uint64_t, std::uint32_t, std::uint64_t>;
  Key key_;
  std::shared_ptr<const KeySet> keys_;
};

}  // namespace espalier::bench
