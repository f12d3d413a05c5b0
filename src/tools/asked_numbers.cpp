// SPDX-License-Identifier: Apache-2.0
#include "tools/asked_numbers.hpp"

#include <fmt/format.h>

#include <utility>

#include "client/impl.hpp"
#include "tools/data_place.hpp"

namespace espalier::tools {
namespace {

Outcome<node::NodeNumbers> decoded(const Result<std::string>& reply, const std::string& address) {
  if (!reply) return call_failed(fmt::format("ask the node at {}", address), reply.error());
  auto numbers = node::decode(*reply);
  if (numbers) return std::move(*numbers);
  return failed(fmt::format("what the node at {} tells is not to be understood", address),
                "It may be newer than this command.");
}

}  // namespace

Outcome<std::optional<node::NodeNumbers>> numbers_of(const Store& store,
                                                     const std::string& address) {
  const auto reply = client::StoreImpl::of(store).node_numbers();
  if (!reply &&
      (reply.error().code == Code::unsupported || reply.error().code == Code::not_permitted)) {
    return std::nullopt;
  }
  auto numbers = decoded(reply, address);
  if (!numbers) return std::unexpected(numbers.error());
  return std::move(*numbers);
}

Outcome<node::NodeNumbers> needed_numbers_of(const Store& store, const std::string& address) {
  const auto reply = client::StoreImpl::of(store).node_numbers();
  if (!reply && reply.error().code == Code::unsupported) {
    return failed(fmt::format("the node at {} does not tell its numbers", address),
                  "It is older than this command.");
  }
  return decoded(reply, address);
}

}  // namespace espalier::tools
