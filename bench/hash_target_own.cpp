// SPDX-License-Identifier: Apache-2.0
// Espalier's hash map: in this process, on a node in it, or through a device before that node.
// Workers are threads of this process, from the last core on.
#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bench/hash_target.hpp"
#include "bench/map_session.hpp"
#include "bench/own_device.hpp"
#include "bench/own_node.hpp"
#include "client/store_impl.hpp"
#include "espalier/hash_map.hpp"

namespace espalier::bench {
namespace {

struct OwnHashHandler final : Handler {
  void done(const Completion& completion) override {
    if (!completion.ok) {
      ++answers->failed;
    } else if (completion.op != Op::get) {
      answers->put += completion.applied ? 1 : 0;
    } else if (completion.found) {
      answers->value(completion.value);
    }
  }
  HashAnswers* answers = nullptr;
};

/// The parts of a target, in the order of their creation.
struct OwnPlaces {
  std::unique_ptr<node::Node> node;
  std::unique_ptr<device::Device> device;
  std::string address;  // of the node, for rings
  std::optional<Store> store;
};

bool reads_alone(HashTargetKind kind) {
  return kind == HashTargetKind::one_sided || kind == HashTargetKind::one_sided_cold;
}

/// The client's cache. Bins take 14 to 28 bytes a pair; the cache has room for twice as much.
StoreOptions access_of(HashTargetKind kind, const HashTargetOptions& options) {
  if (!reads_alone(kind)) return {};
  constexpr std::uint64_t kDirectoriesAlone = 512 << 10;
  constexpr std::uint64_t kBinBytesOfPair = 56;
  const bool cold = kind == HashTargetKind::one_sided_cold;
  return {.access = Access::one_sided,
          .cache_bytes =
              cold ? kDirectoriesAlone : kDirectoriesAlone + options.pairs * kBinBytesOfPair};
}

Store connect_to_own(const std::string& address, const StoreOptions& options = {}) {
  return value_or_throw(Store::connect(address, options), "cannot connect to the node");
}

OwnPlaces start_places(HashTargetKind kind, const HashTargetOptions& options) {
  OwnPlaces places;
  if (kind == HashTargetKind::embedded) {
    places.store.emplace(value_or_throw(Store::open(), "cannot open a store"));
    return places;
  }
  node::Config config = own_node_config();
  NodeTransport transport = NodeTransport::unix_socket;
  if (kind == HashTargetKind::rings_write || reads_alone(kind)) transport = NodeTransport::shm;
  if (kind == HashTargetKind::rings_send) transport = NodeTransport::shm_send;
  if (kind == HashTargetKind::device) {
    prepare_host(config);
    places.node = start_own_node(config);
    places.device = start_own_device(*places.node, {.cache_bytes = options.cache_bytes});
    places.store.emplace(connect_to_own(address_of(*places.device, NodeTransport::unix_socket)));
    return places;
  }
  prepare(config, transport);
  config.node.one_sided = reads_alone(kind);
  places.node = start_own_node(config);
  const std::string address = address_of(*places.node, transport);
  if (!reads_alone(kind)) places.address = address;
  places.store.emplace(connect_to_own(address, access_of(kind, options)));
  return places;
}

class OwnHashTarget final : public HashTarget {
 public:
  OwnHashTarget(HashTargetKind kind, const HashTargetOptions& options)
      : kind_(kind),
        options_(options),
        places_(start_places(kind, options)),
        map_(value_or_throw(places_.store->create_hash_map("bench", {.versions = options.versions}),
                            "cannot make a hash map")) {}

  void run(std::span<const Request> requests, std::uint32_t batch, HashAnswers& answers) override {
    if (!pipeline_ || batch_ != batch) {
      pipeline_.reset();
      pipeline_.emplace(value_or_throw(Pipeline::open(map_, batch), "cannot open a pipeline"));
      batch_ = batch;
    }
    handler_.answers = &answers;
    pipeline_->run(requests, handler_);
  }
  [[nodiscard]] std::string settings() const override {
    return fmt::format("{}, versions {}", name(kind_), options_.versions ? "on" : "off");
  }
  [[nodiscard]] std::string node_address() const override { return places_.address; }
  std::optional<tree::WalkTraffic> traffic() override {
    if (!reads_alone(kind_)) return std::nullopt;
    return client::StoreImpl::of(*places_.store).read_traffic();
  }
  std::optional<std::uint64_t> memory_bytes() override {
    return value_or_throw(map_.stats(), "cannot read its numbers").memory_bytes;
  }

 private:
  const HashTargetKind kind_;
  const HashTargetOptions options_;
  OwnPlaces places_;
  HashMap map_;
  OwnHashHandler handler_;
  std::optional<Pipeline> pipeline_;  // destroyed before its target
  std::uint32_t batch_ = 0;
};

}  // namespace

std::unique_ptr<HashTarget> make_own_hash_target(HashTargetKind kind,
                                                 const HashTargetOptions& options) {
  return std::make_unique<OwnHashTarget>(kind, options);
}

}  // namespace espalier::bench
