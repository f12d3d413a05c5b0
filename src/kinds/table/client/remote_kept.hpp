// SPDX-License-Identifier: Apache-2.0
// A pipeline that nodes keep: loaded where a run of it first goes, for each connection is a session
// of its own, and forgotten by all of them when it ends.
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

  /// Its number in the session, where it is loaded if it has none. Cost: then a request, and one
  /// more where others are to be forgotten. Errors: as TableImpl::keep().
  TableResult<std::uint64_t> number(RemoteSession& session, std::uint32_t table);

 private:
  const std::vector<std::byte> pipeline_;
  std::mutex mutex_;  // guards at_
  std::vector<std::weak_ptr<NodeConnection>> at_;
};

}  // namespace espalier::client
