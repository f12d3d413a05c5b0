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
/// sentence for people. Labels tell apart samples of one name; their values may be any bytes, of
/// which wire::kSampleTextBytesMax are kept. Samples beyond wire::kSamplesMax are left out:
/// data may say how many there are.
/// Whoever may read the object sees all of it, and every user of the machine where the node serves
/// metrics: no keys, no values, and no names of principals.
/// Requires: of names, units, helps and types what wire::is_good() asks for.
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

/// Of which objects samples are wanted.
struct SampleChoice {
  ObjectKind kind = ObjectKind::any;
  std::string prefix{};  ///< of their names
  std::string name{};    ///< empty: all
  std::size_t objects_max = wire::kSampledObjectsMax;
};

/// What a client wants, of objects whose names it may know.
[[nodiscard]] SampleChoice choice_of(const wire::SamplesWanted& wanted, std::string_view name,
                                     std::string_view prefix = {});

/// Takes the samples of those that take most memory, in steps: as many as are wanted and as an
/// answer has bytes for (wire::kSamplesBytesMax).
///
/// Invariant: what it has not come to yet it keeps, so that an object that is dropped meanwhile is
/// told as it was.
/// Thread: one at a time.
class Sampling {
 public:
  /// Cost: looks up one name, or copies the list of the kind's objects.
  Sampling(const Catalog& catalog, SampleChoice choice);
  /// Looks at one object: for its size, and once all sizes are known, for its samples. Returns
  /// whether there is more to do. Cost: that of Object::numbers() or Object::add_samples().
  bool step();
  /// Requires: there is no more to do.
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
  std::size_t sized_ = 0;  // of them the first, whose sizes are known
  bool ranked_ = false;    // they are in order, and no more than are wanted
  std::size_t next_ = 0;   // whose samples are the next
  std::size_t bytes_ = 0;  // of the items
  wire::SampledObjects result_;
};

/// All steps of a Sampling.
[[nodiscard]] wire::SampledObjects samples_of(const Catalog& catalog, const SampleChoice& choice);

}  // namespace espalier::catalog
