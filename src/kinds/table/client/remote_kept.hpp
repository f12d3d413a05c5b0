// SPDX-License-Identifier: Apache-2.0
// A prepared pipeline at nodes: loaded in each session where a run of it first goes, and dropped
// from all sessions when it is destroyed.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "channel/rings/remote_sessions.hpp"
#include "kinds/table/client/tables.hpp"

namespace espalier::client {

class RemoteKept final : public KeptPipeline {
 public:
  explicit RemoteKept(std::span<const std::byte> pipeline)
      : pipeline_(pipeline.begin(), pipeline.end()) {}
  ~RemoteKept() override;

  /// Its number in the session; loads it if needed. Cost: one request to load it, and one more if
  /// others are to be dropped. Errors: as TableImpl::keep().
  TableResult<std::uint64_t> number(RemoteSession& session, std::uint32_t table);

 private:
  const std::vector<std::byte> pipeline_;
  std::mutex mutex_;  // guards at_
  std::vector<std::weak_ptr<NodeConnection>> at_;
};

}  // namespace espalier::client
