// SPDX-License-Identifier: Apache-2.0
#include "bench/target.hpp"

#include <array>
#include <stdexcept>
#include <utility>

namespace espalier::bench {
namespace {

constexpr std::array<std::pair<std::string_view, TargetKind>, 4> kTargets{{
    {"embedded", TargetKind::embedded},
    {"absl", TargetKind::absl},
    {"rocksdb", TargetKind::rocksdb},
    {"lmdb", TargetKind::lmdb},
}};

}  // namespace

std::string_view name(TargetKind kind) {
  for (const auto& [name, entry] : kTargets) {
    if (entry == kind) return name;
  }
  return "?";
}

std::optional<TargetKind> parse_target(std::string_view text) {
  for (const auto& [name, entry] : kTargets) {
    if (name == text) return entry;
  }
  return std::nullopt;
}

std::unique_ptr<Target> make_target(TargetKind kind, const TargetOptions& options) {
  switch (kind) {
    case TargetKind::embedded: return make_embedded_target(options);
    case TargetKind::absl: return make_absl_target(options);
    case TargetKind::rocksdb: return make_rocksdb_target(options);
    case TargetKind::lmdb: return make_lmdb_target(options);
  }
  throw std::runtime_error("unknown target");
}

}  // namespace espalier::bench
