// SPDX-License-Identifier: Apache-2.0
// The numbers of a node, asked of it.
//
// Thread: any.
#pragma once

#include <optional>
#include <utility>

#include "client/impl.hpp"
#include "node/numbers_format.hpp"

namespace espalier::tools {

/// Nothing where the node does not tell them: it is older than this command.
[[nodiscard]] inline std::optional<node::NodeNumbers> numbers_of(const Store& store) {
  const auto bytes = client::StoreImpl::of(store).node_numbers();
  if (!bytes) return std::nullopt;
  auto numbers = node::decode(*bytes);
  return numbers ? std::optional(std::move(*numbers)) : std::nullopt;
}

}  // namespace espalier::tools
