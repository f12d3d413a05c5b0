// SPDX-License-Identifier: Apache-2.0
// The numbers of a node and of its objects, asked of it.
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

/// Whether these are of a device: it has numbers of its own, and its host's objects.
[[nodiscard]] bool is_device(const node::NodeNumbers& numbers);

/// Nothing where the node does not tell them to this client: it is older than this command, or the
/// client may not see them.
[[nodiscard]] Outcome<std::optional<node::NodeNumbers>> numbers_of(const Store& store,
                                                                   const std::string& address);
/// The same, but fails there too.
[[nodiscard]] Outcome<node::NodeNumbers> needed_numbers_of(const Store& store,
                                                           const std::string& address);

/// The samples of objects that this client may read, those that take most memory. None of a node
/// that is older than this command.
[[nodiscard]] Outcome<wire::SampledObjects> samples_of_all(const Store& store,
                                                           const std::string& address);
/// The same beside numbers that were told. Nothing of a device, which has
/// numbers of its own and its host's objects; nor where the node is out of memory or gone.
[[nodiscard]] Outcome<std::optional<wire::SampledObjects>> samples_beside(
    const node::NodeNumbers& numbers, const Store& store, const std::string& address);
/// The samples of one object, of whatever kind. Fails where there is none.
[[nodiscard]] Outcome<wire::SampledObject> samples_of(const Store& store,
                                                      const std::string& address,
                                                      const std::string& name);

}  // namespace espalier::tools
