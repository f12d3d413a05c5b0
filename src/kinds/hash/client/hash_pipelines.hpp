// SPDX-License-Identifier: Apache-2.0
// Implementations of hash map Pipelines: a rolling queue for a map of this process, or a lane to a
// node.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "channel/channel.hpp"
#include "channel/reached_object.hpp"
#include "channel/rings/pipeline_impl.hpp"

namespace espalier::hash {
class HashMap;
}

namespace espalier::client {

/// Errors: too_many_participants; std::bad_alloc. Requires: the object is of this process.
[[nodiscard]] Result<std::unique_ptr<PipelineImpl>> open_own_pipeline(
    std::shared_ptr<channel::Channel> channel, const channel::Reached<hash::HashMap>& object,
    std::uint32_t in_flight);
/// Errors: as RemoteSessions::open_pipeline(); unsupported (its node is not reached by rings).
[[nodiscard]] Result<std::unique_ptr<PipelineImpl>> open_pipeline_of_node(
    channel::Channel& channel, const channel::Reached<hash::HashMap>& object,
    std::uint32_t in_flight);

}  // namespace espalier::client
