// SPDX-License-Identifier: Apache-2.0
#include "kinds/program/sample_writer.hpp"

#include <string>

namespace espalier {

void ObjectSamples::counter(const Text& text, std::uint64_t value) {
  writer_.add(wire::SampleType::counter, text, value);
}
void ObjectSamples::gauge(const Text& text, std::uint64_t value) {
  writer_.add(wire::SampleType::gauge, text, value);
}

namespace program {

void SampleWriter::add(wire::SampleType type, const ObjectSamples::Text& text,
                       std::uint64_t value) {
  const wire::Sample sample{
      std::string(text.name), std::string(text.unit), std::string(text.help), type, {}, value};
  if (!wire::is_good(sample, kind_)) return;
  const catalog::SampleList::Text good{text.name, text.unit, text.help};
  if (type == wire::SampleType::counter) return to_.counter(good, value);
  to_.gauge(good, value);
}

}  // namespace program
}  // namespace espalier
