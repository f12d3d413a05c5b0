// SPDX-License-Identifier: Apache-2.0
// Reads as of a cut of several shards.
//
// Thread: any.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "shards/sharded_cut.hpp"
#include "shards/sharded_reads.hpp"

namespace espalier::client {

class ShardedSnapshot final : public SnapshotImpl {
 public:
  explicit ShardedSnapshot(Cut cut) : cut_(std::move(cut)), version_(cut_.version()) {}

  [[nodiscard]] Version version() const override { return version_; }
  /// Requires: the cut has the shards of the request; of a floor, all to its left too.
  Result<void> run(const Request& request, Handler& handler) override;
  Result<void> run_parts(const Request& scan, std::uint32_t parts, Handler& handler) override;
  Result<std::uint64_t> count(std::string_view low, std::string_view high) override;

 private:
  [[nodiscard]] ShardRunner runners() {
    return [this](std::size_t shard) -> Result<Runner*> { return &cut_.part(shard); };
  }
  /// Keys at which a scan of the shards may be split, including their borders.
  Result<std::vector<std::string>> borders_of(const Request& scan, ShardSpan span,
                                              std::uint32_t parts);

  Cut cut_;
  const Version version_;
};

}  // namespace espalier::client
