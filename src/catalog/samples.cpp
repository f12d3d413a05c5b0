// SPDX-License-Identifier: Apache-2.0
#include "catalog/samples.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "wire/node_numbers.hpp"

namespace espalier::catalog {
namespace {

bool is_chosen(const Entry& entry, const SampleChoice& choice) {
  if (choice.beyond_node_stats && wire::is_in_node_stats(entry.kind)) return false;
  if (!choice.name.empty() && entry.name != choice.name) return false;
  return entry.name.starts_with(choice.prefix);
}

struct Ranked {
  std::uint64_t memory_bytes;
  EntryPointer entry;
};

bool takes_more(const Ranked& a, const Ranked& b) {
  if (a.memory_bytes != b.memory_bytes) return a.memory_bytes > b.memory_bytes;
  return a.entry->name < b.entry->name;
}

wire::SampledObject sampled(const Entry& entry) {
  SampleList list;
  entry.object->add_samples(list);
  wire::SampledObject object{.kind = entry.kind,
                             .kind_name = std::string(name(entry.kind)),
                             .id = entry.id,
                             .name = entry.name,
                             .samples = list.take()};
  ESPALIER_ASSERT(wire::is_good(object));  // what a kind says in its code
  return object;
}

}  // namespace

SampleChoice choice_of(const wire::SamplesWanted& wanted, std::string_view name,
                       std::string_view prefix) {
  return {.kind = static_cast<ObjectKind>(wanted.kind),
          .beyond_node_stats = (wanted.flags & wire::kSamplesBeyondNodeStats) != 0,
          .prefix = std::string(prefix),
          .name = std::string(name),
          .objects_max = wanted.objects_max};
}

wire::SampledObjects samples_of(const Catalog& catalog, const SampleChoice& choice) {
  std::vector<Ranked> chosen;
  for (EntryPointer& entry : catalog.list(choice.kind)) {
    if (!is_chosen(*entry, choice)) continue;
    const std::uint64_t bytes = entry->object->numbers().memory_bytes;
    chosen.push_back({bytes, std::move(entry)});
  }
  wire::SampledObjects result;
  result.count = chosen.size();
  const std::size_t count = std::min(chosen.size(), choice.objects_max);
  std::ranges::partial_sort(chosen, chosen.begin() + static_cast<std::ptrdiff_t>(count),
                            takes_more);
  chosen.resize(count);
  for (const Ranked& one : chosen) result.objects.push_back(sampled(*one.entry));
  return result;
}

}  // namespace espalier::catalog
