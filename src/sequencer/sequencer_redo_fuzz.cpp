// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as records of sequencers and counters: what is applied takes no number back.
//
// Input: records, each behind its length in 1 byte.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/testing/fuzz_input.hpp"
#include "sequencer/counters.hpp"
#include "sequencer/redo_record.hpp"
#include "sequencer/sequencer.hpp"

namespace espalier::sequencer {
namespace {

using base::want;

void check(const Result<void>& applied) {
  if (applied) return;
  want(applied.error().code == Code::corrupt, "another error than corrupt");
  want(!text_of(static_cast<catalog::RedoFault>(applied.error().detail)).empty(),
       "a fault without words");
}

void apply(Sequencer& numbers, Counters& counters, std::string_view record) {
  const wire::SequencerFacts before = numbers.facts();
  const auto applied = numbers.apply_redo(record);
  check(applied);
  const wire::SequencerFacts after = numbers.facts();
  want(after.epoch >= before.epoch, "an epoch goes back");
  want(after.epoch > before.epoch || after.next >= before.next, "a number comes again");
  want(after.first <= after.next && after.next <= wire::kSequencerEnd, "no number can be so");
  want(applied.has_value() || std::memcmp(&before, &after, sizeof after) == 0,
       "what was refused has changed something");
  const auto counted = counters.apply_redo(record);
  check(counted);
  want(!applied || !counted, "one record of two kinds");
  if (counted) {
    const Counted said = *read_counted(record);
    want(*counters.take(said.name, 0) >= said.next, "a number of a counter comes again");
  }
}

void run(const std::uint8_t* data, std::size_t size) {
  Sequencer numbers(1, "n", 0);
  Counters counters;
  for (std::size_t at = 0; at < size;) {
    const std::size_t bytes = std::min<std::size_t>(data[at], size - at - 1);
    const std::unique_ptr<char[]> exact(new char[bytes]);  // so that a byte too far is seen
    if (bytes != 0) std::memcpy(exact.get(), data + at + 1, bytes);
    apply(numbers, counters, {exact.get(), bytes});
    at += 1 + bytes;
  }
}

}  // namespace
}  // namespace espalier::sequencer

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::sequencer::run(data, size);
  return 0;
}
