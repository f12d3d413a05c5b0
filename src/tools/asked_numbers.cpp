// SPDX-License-Identifier: Apache-2.0
#include "tools/asked_numbers.hpp"

#include <fmt/format.h>

#include <utility>

#include "channel/objects.hpp"
#include "client/store_impl.hpp"
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

std::unexpected<Failure> not_understood(const std::string& address) {
  return failed(
      fmt::format("what the node at {} tells of its objects is not to be understood", address),
      "It may be newer than this command.");
}

Outcome<wire::SampledObjects> understood(Result<wire::SampledObjects> reply,
                                         const std::string& address) {
  if (reply) return *std::move(reply);
  if (reply.error().code != Code::corrupt) {
    return call_failed(fmt::format("ask the node at {}", address), reply.error());
  }
  return not_understood(address);
}

// None of a node that is older than this command.
Result<wire::SampledObjects> samples(const Store& store) {
  constexpr wire::SamplesWanted wanted{wire::kSampledObjectsMax, 0, 0, 0};
  auto reply = channel::samples(*client::StoreImpl::of(store).channel(), wanted);
  if (!reply && reply.error().code == Code::unsupported) return wire::SampledObjects{};
  return reply;
}

}  // namespace

bool is_device(const node::NodeNumbers& numbers) {
  return numbers.find("device_round_trips").has_value();
}

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

Outcome<wire::SampledObjects> samples_of_all(const Store& store, const std::string& address) {
  return understood(samples(store), address);
}

Outcome<std::optional<wire::SampledObjects>> samples_beside(const node::NodeNumbers& numbers,
                                                            const Store& store,
                                                            const std::string& address) {
  if (is_device(numbers)) return std::nullopt;
  auto reply = samples(store);
  if (!reply &&
      (reply.error().code == Code::out_of_memory || reply.error().code == Code::connection_lost)) {
    return std::nullopt;
  }
  auto sampled = understood(std::move(reply), address);
  if (!sampled) return std::unexpected(sampled.error());
  return *std::move(sampled);
}

Outcome<wire::SampledObject> samples_of(const Store& store, const std::string& address,
                                        const std::string& name) {
  wire::SamplesWanted wanted{};
  wanted.objects_max = 1;
  auto reply = channel::samples(*client::StoreImpl::of(store).channel(), wanted, name);
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
  if (sampled->objects.front().name != name) return not_understood(address);
  return std::move(sampled->objects.front());
}

}  // namespace espalier::tools
