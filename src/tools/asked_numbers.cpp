// SPDX-License-Identifier: Apache-2.0
#include "tools/asked_numbers.hpp"

#include <fmt/format.h>

#include <utility>

#include "client/impl.hpp"
#include "cmdline/text_codec.hpp"
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

Outcome<wire::SampledObjects> understood(Result<wire::SampledObjects> reply,
                                         const std::string& address) {
  if (reply) return *std::move(reply);
  if (reply.error().code != Code::corrupt) {
    return call_failed(fmt::format("ask the node at {}", address), reply.error());
  }
  return failed(
      fmt::format("what the node at {} tells of its objects is not to be understood", address),
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

Outcome<wire::SampledObjects> other_samples_of(const Store& store, const std::string& address) {
  wire::SamplesWanted wanted{};
  wanted.objects_max = wire::kSampledObjectsMax;
  wanted.flags = wire::kSamplesBeyondNodeStats;
  auto reply = client::StoreImpl::of(store).samples(wanted, {});
  if (!reply && reply.error().code == Code::unsupported) return wire::SampledObjects{};
  return understood(std::move(reply), address);
}

Outcome<wire::SampledObject> samples_of(const Store& store, const std::string& address,
                                        const std::string& name) {
  wire::SamplesWanted wanted{};
  wanted.objects_max = 1;
  auto reply = client::StoreImpl::of(store).samples(wanted, name);
  if (!reply && reply.error().code == Code::unsupported) {
    return failed(fmt::format("the node at {} does not tell numbers of any object", address),
                  "It is older than this command.");
  }
  auto sampled = understood(std::move(reply), address);
  if (!sampled) return std::unexpected(sampled.error());
  if (sampled->objects.empty()) {
    return failed(fmt::format("the node at {} has no object '{}'", address, cmdline::escaped(name)),
                  "espalier list shows all that it has, with kinds.");
  }
  return std::move(sampled->objects.front());
}

}  // namespace espalier::tools
