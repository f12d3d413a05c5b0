// SPDX-License-Identifier: Apache-2.0
#include "bench/target.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include "bench/named_values.hpp"

namespace espalier::bench {
namespace {

constexpr std::array<std::pair<std::string_view, TargetKind>, 8> kTargetNames{{
    {"embedded", TargetKind::embedded},
    {"node", TargetKind::node},
    {"one-sided", TargetKind::one_sided},
    {"device", TargetKind::device},
    {"absl", TargetKind::absl},
    {"rocksdb", TargetKind::rocksdb},
    {"lmdb", TargetKind::lmdb},
    {"redis", TargetKind::redis},
}};

}  // namespace

std::string_view name(TargetKind kind) { return name_in(kTargetNames, kind); }

std::optional<TargetKind> parse_target(std::string_view text) {
  return value_in(kTargetNames, text);
}

void TargetSession::run_paced(std::span<const Request> /*requests*/,
                              std::span<const std::uint64_t> /*due_ns*/, Answers& /*answers*/,
                              Latencies& /*latencies*/) {
  throw std::runtime_error("this target takes one call at a time: it cannot be given a pace");
}

std::unique_ptr<Target> make_target(TargetKind kind, const TargetOptions& options) {
  switch (kind) {
    case TargetKind::embedded: return make_embedded_target(options);
    case TargetKind::node: return make_node_target(options);
    case TargetKind::one_sided: {
      TargetOptions alone = options;
      alone.one_sided = true;
      return make_node_target(alone);
    }
    case TargetKind::device: return make_device_target(options);
    case TargetKind::absl: return make_absl_target(options);
    case TargetKind::rocksdb: return make_rocksdb_target(options);
    case TargetKind::lmdb: return make_lmdb_target(options);
    case TargetKind::redis: return make_redis_target(options);
  }
  throw std::runtime_error("unknown target");
}

}  // namespace espalier::bench
