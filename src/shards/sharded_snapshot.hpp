// SPDX-License-Identifier: Apache-2.0
// Reads as of a cut of several shards.
//
// Thread: any.
#pragma once

#include <utility>

#include "shards/sharded_cut.hpp"
#include "shards/sharded_reads.hpp"

namespace espalier::client {

class ShardedSnapshot final : public SnapshotImpl {
 public:
  explicit ShardedSnapshot(Cut cut) : cut_(std::move(cut)), version_(cut_.version()) {}

  [[nodiscard]] Version version() const override { return version_; }
  /// Requires: the cut has the shards of the request; of a floor, all to its left too.
  Result<void> run(const Request& request, Handler& handler) override;
  Result<std::uint64_t> count(std::string_view low, std::string_view high) override;

 private:
  Cut cut_;
  const Version version_;
};

}  // namespace espalier::client
