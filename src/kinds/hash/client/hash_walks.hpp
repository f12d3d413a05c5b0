// SPDX-License-Identifier: Apache-2.0
// Walks over all items of a hash map, of this process or of a node, for HashMap::walk.
//
// Thread: any.
#pragma once

#include <cstdint>

#include "channel/channel.hpp"
#include "channel/reached_object.hpp"
#include "espalier/map.hpp"

namespace espalier::hash {
class HashMap;
}

namespace espalier::client {

// Errors of both: as HashMap::walk; std::bad_alloc.
[[nodiscard]] Result<std::uint64_t> walk_own(hash::HashMap& map, const ItemSink& sink);
/// Requests the pieces in order, and each long value separately.
[[nodiscard]] Result<std::uint64_t> walk_of_node(channel::Channel& channel,
                                                 const channel::Reached<hash::HashMap>& object,
                                                 const ItemSink& sink);

}  // namespace espalier::client
