// SPDX-License-Identifier: Apache-2.0
// Statistics of the objects of a store, of any kind, as labelled samples (wire/samples.hpp).
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

/// Collects an object's samples.
///
/// A name has lower-case letters, digits and underscores, and ends with the unit, if there is one;
/// a node's metrics prefix it with "espalier_" and the kind ("espalier_map_items"). A counter only
/// rises while the object lives, and metrics append "_total" to its name. `help` is a sentence for
/// people. Labels distinguish samples of one name; their values may be any bytes, cut to
/// wire::kSampleTextBytesMax. Samples beyond wire::kSamplesMax are dropped: data may decide how
/// many there are.
/// All users that may read the object see all its samples, and so does every user of the machine
/// where the node serves metrics. So they contain no keys, no values, and no names of principals.
/// Requires: names, units, helps and types satisfy wire::is_good().
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
  void add(wire::SampleType type, const Text& text, std::uint64_t value, Labels labels);

  std::vector<wire::Sample> samples_;
};

/// Selects the objects to sample.
struct SampleChoice {
  ObjectKind kind = ObjectKind::any;
  std::string prefix{};  ///< of their names
  std::string name{};    ///< empty: all
  std::size_t objects_max = wire::kSampledObjectsMax;
};

/// A client's selection, among objects whose names it may know.
[[nodiscard]] SampleChoice choice_of(const wire::SamplesWanted& wanted, std::string_view name,
                                     std::string_view prefix = {});

/// Takes the samples of the objects that use most memory, in steps: as many objects as requested,
/// and as fit into an answer (wire::kSamplesBytesMax).
///
/// Invariant: it holds the objects that it has not sampled yet, so an object that is dropped
/// meanwhile is reported all the same.
/// Thread: one at a time.
class Sampling {
 public:
  /// Cost: looks up one name, or copies the list of the kind's objects.
  Sampling(const Catalog& catalog, SampleChoice choice);
  /// Visits one object: for its size, and once all sizes are known, for its samples. Returns
  /// whether there is more to do. Cost: that of Object::numbers() or Object::add_samples().
  bool step();
  /// Requires: step() has returned false.
  [[nodiscard]] wire::SampledObjects take() { return std::move(result_); }

 private:
  struct Ranked {
    std::uint64_t memory_bytes;
    EntryPointer entry;
  };
  static bool takes_more(const Ranked& a, const Ranked& b);
  void rank();
  bool add(const Entry& entry);

  std::size_t objects_max_;
  std::vector<Ranked> chosen_;
  std::size_t sized_ = 0;  // how many, from the first, have their sizes
  bool ranked_ = false;    // sorted, and no more than requested
  std::size_t next_ = 0;   // the next to be sampled
  std::size_t bytes_ = 0;  // of the items
  wire::SampledObjects result_;
};

/// Runs all steps of a Sampling.
[[nodiscard]] wire::SampledObjects samples_of(const Catalog& catalog, const SampleChoice& choice);

}  // namespace espalier::catalog
