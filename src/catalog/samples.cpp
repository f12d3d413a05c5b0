// SPDX-License-Identifier: Apache-2.0
#include "catalog/samples.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace espalier::catalog {
namespace {

bool is_chosen(const Entry& entry, const SampleChoice& choice) {
  if (choice.kind != ObjectKind::any && entry.kind != choice.kind) return false;
  return entry.name.starts_with(choice.prefix);
}

wire::SampledObject sampled(const Entry& entry) {
  SampleList list;
  entry.object->add_samples(list);
  const std::string_view kind = entry.object->kind_name();
  wire::SampledObject object{.kind = entry.kind,
                             .kind_name = std::string(kind.empty() ? name(entry.kind) : kind),
                             .id = entry.id,
                             .name = entry.name,
                             .samples = list.take()};
  ESPALIER_ASSERT(wire::is_good(object));  // the kind's own code
  return object;
}

}  // namespace

void SampleList::add(wire::SampleType type, const Text& text, std::uint64_t value, Labels labels) {
  if (samples_.size() == wire::kSamplesMax) return;
  wire::Sample& sample = samples_.emplace_back(std::string(text.name), std::string(text.unit),
                                               std::string(text.help), type, labels, value);
  for (wire::SampleLabel& label : sample.labels) {
    if (label.value.size() > wire::kSampleTextBytesMax) {
      label.value.resize(wire::kSampleTextBytesMax);
    }
  }
}

SampleChoice choice_of(const wire::SamplesWanted& wanted, std::string_view name,
                       std::string_view prefix) {
  return {.kind = static_cast<ObjectKind>(wanted.kind),
          .prefix = std::string(prefix),
          .name = std::string(name),
          .objects_max = wanted.objects_max};
}

Sampling::Sampling(const Catalog& catalog, SampleChoice choice) : objects_max_(choice.objects_max) {
  const auto add_chosen = [&](EntryPointer entry) {
    if (entry != nullptr && is_chosen(*entry, choice)) chosen_.push_back({0, std::move(entry)});
  };
  if (choice.name.empty()) {
    for (EntryPointer& entry : catalog.list(choice.kind)) add_chosen(std::move(entry));
  } else {
    add_chosen(catalog.find_any(choice.name));
  }
  result_.count = chosen_.size();
  if (chosen_.size() == 1) sized_ = 1;  // nothing to sort
}

bool Sampling::takes_more(const Ranked& a, const Ranked& b) {
  if (a.memory_bytes != b.memory_bytes) return a.memory_bytes > b.memory_bytes;
  return a.entry->name < b.entry->name;
}

bool Sampling::step() {
  if (sized_ != chosen_.size()) {
    Ranked& one = chosen_[sized_++];
    one.memory_bytes = one.entry->object->numbers().memory_bytes;
    return true;
  }
  if (!std::exchange(ranked_, true)) rank();
  if (next_ != chosen_.size() && add(*chosen_[next_].entry)) {
    chosen_[next_++].entry.reset();
    if (next_ != chosen_.size()) return true;
  }
  chosen_.clear();
  sized_ = next_ = 0;
  return false;
}

void Sampling::rank() {
  const std::size_t count = std::min(chosen_.size(), objects_max_);
  std::ranges::partial_sort(chosen_, chosen_.begin() + static_cast<std::ptrdiff_t>(count),
                            takes_more);
  chosen_.resize(count);
  sized_ = count;
}

// False: it does not fit, and no object after it is added.
bool Sampling::add(const Entry& entry) {
  wire::SampledObject object = sampled(entry);
  bytes_ += wire::item_of(object).size();
  if (bytes_ > wire::kSamplesBytesMax) return false;
  result_.objects.push_back(std::move(object));
  return true;
}

wire::SampledObjects samples_of(const Catalog& catalog, const SampleChoice& choice) {
  Sampling sampling(catalog, choice);
  while (sampling.step()) {
  }
  return sampling.take();
}

}  // namespace espalier::catalog
