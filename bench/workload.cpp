// SPDX-License-Identifier: Apache-2.0
#include "bench/workload.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "bench/named_values.hpp"

namespace espalier::bench {
namespace {

constexpr std::array<std::pair<std::string_view, Workload>, 13> kWorkloads{{
    {"a", Workload::a},
    {"b", Workload::b},
    {"c", Workload::c},
    {"d", Workload::d},
    {"e", Workload::e},
    {"f", Workload::f},
    {"cloud", Workload::cloud},
    {"get", Workload::get},
    {"scan", Workload::scan},
    {"mixed", Workload::mixed},
    {"load", Workload::load},
    {"load-ascending", Workload::load_ascending},
    {"erase", Workload::erase},
}};

constexpr std::array<std::pair<std::string_view, Distribution>, 3> kDistributions{{
    {"uniform", Distribution::uniform},
    {"zipfian", Distribution::zipfian},
    {"latest", Distribution::latest},
}};

}  // namespace

Mix mix_of(Workload workload, const Shares& shares) {
  switch (workload) {
    case Workload::a: return {.read = 0.5, .update = 0.5};
    case Workload::b: return {.read = 0.95, .update = 0.05};
    case Workload::c:
    case Workload::get: return {.read = 1};
    case Workload::d: return {.read = 0.95, .insert = 0.05};
    case Workload::e: return {.insert = 0.05};
    case Workload::f: return {.read = 0.5, .read_modify_write = 0.5};
    case Workload::cloud: return {.insert = 1 - shares.scans};
    case Workload::scan: return {};
    case Workload::mixed: return {.read = 1 - shares.writes, .update = shares.writes};
    case Workload::load:
    case Workload::load_ascending: return {.insert = 1};
    case Workload::erase: return {};
  }
  return {};
}

bool starts_empty(Workload workload) {
  return workload == Workload::load || workload == Workload::load_ascending;
}

bool covers_keys(Workload workload) {
  return starts_empty(workload) || workload == Workload::erase;
}

bool scans(Workload workload) { return scan_items_max(workload, 1) > 0; }

bool mutates(Workload workload, const Shares& shares) {
  const Mix mix = mix_of(workload, shares);
  return mix.update + mix.insert + mix.read_modify_write > 0 || workload == Workload::erase;
}

std::uint32_t scan_items_max(Workload workload, std::uint32_t scan_items) {
  switch (workload) {
    case Workload::e: return 100;
    case Workload::cloud: return 3;
    case Workload::scan: return scan_items;
    default: return 0;
  }
}

Distribution default_distribution(Workload workload) {
  switch (workload) {
    case Workload::a:
    case Workload::b:
    case Workload::c:
    case Workload::e:
    case Workload::f: return Distribution::zipfian;
    case Workload::d: return Distribution::latest;
    default: return Distribution::uniform;  // honeycomb's evaluation, and the small ones
  }
}

std::uint64_t default_ops(Workload workload, std::uint32_t scan_items) {
  if (workload == Workload::e) return 1'000'000;
  if (workload != Workload::scan) return 4'000'000;
  return std::clamp<std::uint64_t>(50'000'000 / scan_items, 20'000, 4'000'000);
}

std::string_view name(Workload workload) { return name_in(kWorkloads, workload); }
std::string_view name(Distribution distribution) { return name_in(kDistributions, distribution); }

std::optional<Workload> parse_workload(std::string_view text) { return value_in(kWorkloads, text); }

std::optional<Distribution> parse_distribution(std::string_view text) {
  return value_in(kDistributions, text);
}

}  // namespace espalier::bench
