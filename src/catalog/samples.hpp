// SPDX-License-Identifier: Apache-2.0
// Statistics of the objects of a store, of whatever kind, as labelled samples (wire/samples.hpp).
//
// Thread: any.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/catalog.hpp"
#include "wire/samples.hpp"

namespace espalier::catalog {

/// What an object adds its samples to.
///
/// A name is of small letters, digits and underscores and ends with the unit, where there is one;
/// in the metrics of a node it stands behind "espalier_" and the kind ("espalier_map_items"). A
/// counter only rises while the object lives, and metrics add "_total" to its name. `help` is a
/// sentence for people. Labels tell apart samples of one name; their values may be any bytes.
/// Whoever may read the object sees all of it, and every user of the machine where the node serves
/// metrics: no keys, no values, and no names of principals.
/// Requires: what wire::is_good() asks for, and no more than wire::kSamplesMax samples.
class SampleList {
 public:
  struct Text {
    std::string_view name;
    std::string_view unit;
    std::string_view help;
  };
  using Labels = std::initializer_list<wire::SampleLabel>;

  void counter(const Text& text, std::uint64_t value, Labels labels = {}) {
    add(wire::SampleType::counter, text, value, labels);
  }
  void gauge(const Text& text, std::uint64_t value, Labels labels = {}) {
    add(wire::SampleType::gauge, text, value, labels);
  }
  [[nodiscard]] std::vector<wire::Sample> take() { return std::move(samples_); }

 private:
  void add(wire::SampleType type, const Text& text, std::uint64_t value, Labels labels) {
    samples_.push_back({std::string(text.name), std::string(text.unit), std::string(text.help),
                        type, labels, value});
  }

  std::vector<wire::Sample> samples_;
};

/// Of which objects samples are wanted.
struct SampleChoice {
  ObjectKind kind = ObjectKind::any;
  bool beyond_node_stats = false;  ///< only kinds that node_stats does not tell of
  std::string prefix{};            ///< of their names
  std::string name{};              ///< empty: all
  std::size_t objects_max = wire::kSampledObjectsMax;
};

/// What a client wants, of objects whose names it may know.
[[nodiscard]] SampleChoice choice_of(const wire::SamplesWanted& wanted, std::string_view name,
                                     std::string_view prefix = {});

/// The samples of those that take most memory.
/// Cost: the numbers of all objects chosen, and the samples of those told of.
[[nodiscard]] wire::SampledObjects samples_of(const Catalog& catalog, const SampleChoice& choice);

}  // namespace espalier::catalog
