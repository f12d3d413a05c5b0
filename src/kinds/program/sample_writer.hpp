// SPDX-License-Identifier: Apache-2.0
// Implementation behind ObjectSamples: adds the samples that can be sent, and skips others.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <string_view>

#include "catalog/samples.hpp"
#include "espalier/offload.hpp"

namespace espalier::program {

class SampleWriter {
 public:
  SampleWriter(catalog::SampleList& to, std::string_view kind) : to_(to), kind_(kind) {}
  [[nodiscard]] ObjectSamples samples() { return ObjectSamples(*this); }
  void add(wire::SampleType type, const ObjectSamples::Text& text, std::uint64_t value);

 private:
  catalog::SampleList& to_;
  const std::string_view kind_;
};

}  // namespace espalier::program
