// SPDX-License-Identifier: Apache-2.0
#include "bench/hash_target.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace espalier::bench {
namespace {

struct HashTargetRow {
  HashTargetKind kind;
  std::string_view name;
};
constexpr std::array kHashTargets{
    HashTargetRow{HashTargetKind::embedded, "embedded"},
    HashTargetRow{HashTargetKind::unix_rings, "unix"},
    HashTargetRow{HashTargetKind::rings_write, "rings-write"},
    HashTargetRow{HashTargetKind::rings_send, "rings-send"},
    HashTargetRow{HashTargetKind::device, "device"},
    HashTargetRow{HashTargetKind::one_sided, "one-sided"},
    HashTargetRow{HashTargetKind::one_sided_cold, "one-sided-cold"},
    HashTargetRow{HashTargetKind::absl, "absl"},
    HashTargetRow{HashTargetKind::boost, "boost"},
    HashTargetRow{HashTargetKind::memcached, "memcached"},
};

}  // namespace

std::string_view name(HashTargetKind kind) {
  return std::ranges::find(kHashTargets, kind, &HashTargetRow::kind)->name;
}

std::optional<HashTargetKind> parse_hash_target(std::string_view text) {
  const auto row = std::ranges::find(kHashTargets, text, &HashTargetRow::name);
  if (row == kHashTargets.end()) return std::nullopt;
  return row->kind;
}

std::vector<HashTargetKind> all_hash_targets() {
  std::vector<HashTargetKind> all;
  for (const HashTargetRow& row : kHashTargets) all.push_back(row.kind);
  return all;
}

std::unique_ptr<HashTarget> make_hash_target(HashTargetKind kind,
                                             const HashTargetOptions& options) {
  switch (kind) {
    case HashTargetKind::absl: return make_absl_hash_target(options);
    case HashTargetKind::boost: return make_boost_hash_target(options);
    case HashTargetKind::memcached: return make_memcached_target(options);
    default: return make_own_hash_target(kind, options);
  }
}

}  // namespace espalier::bench
