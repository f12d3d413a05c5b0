// SPDX-License-Identifier: Apache-2.0
// Requests the statistics of a node and of its objects.
//
// Thread: any.
#pragma once

#include <optional>
#include <string>

#include "espalier/map.hpp"
#include "node/numbers_format.hpp"
#include "tools/environment.hpp"
#include "wire/samples.hpp"

namespace espalier::tools {

/// Whether they come from a device, which has statistics of its own, and its host's objects.
[[nodiscard]] bool is_device(const node::NodeNumbers& numbers);

/// Nullopt if the node does not report them to this client: it is older than this command, or the
/// client has no right.
[[nodiscard]] Outcome<std::optional<node::NodeNumbers>> numbers_of(const Store& store,
                                                                   const std::string& address);
/// The same, but fails then.
[[nodiscard]] Outcome<node::NodeNumbers> needed_numbers_of(const Store& store,
                                                           const std::string& address);

/// The samples of objects that this client may read, largest in memory first. Empty from a node
/// older than this command.
[[nodiscard]] Outcome<wire::SampledObjects> samples_of_all(const Store& store,
                                                           const std::string& address);
/// The same, to accompany a node's statistics. Nullopt for a device, which has statistics of its
/// own and its host's objects, and if the node is out of memory or gone.
[[nodiscard]] Outcome<std::optional<wire::SampledObjects>> samples_beside(
    const node::NodeNumbers& numbers, const Store& store, const std::string& address);
/// The samples of one object, of any kind. Fails if there is none.
[[nodiscard]] Outcome<wire::SampledObject> samples_of(const Store& store,
                                                      const std::string& address,
                                                      const std::string& name);

}  // namespace espalier::tools
