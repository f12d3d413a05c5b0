// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a node's answer to one_sided_sequencer, and as what FETCH_ADDs of the word
// bring: numbers that count are of the epoch that was asked for, none of them beyond the end, and
// none is given twice while the word only grows.
//
// Input: a SequencerGrant, 4 bytes of how many numbers are wanted, then words of 8 bytes.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/testing/fuzz_input.hpp"
#include "kinds/sequencer/answer.hpp"
#include "kinds/sequencer/calls.hpp"

namespace espalier::sequencer {
namespace {

using base::want;

void run(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<char[]> exact(new char[size]);  // so that a byte too far is seen
  if (size != 0) std::memcpy(exact.get(), data, size);
  const std::string_view all(exact.get(), size);
  const bool whole = wire::read_reply<sequencer_calls::Granted>({}, all).has_value();
  want(whole == (size == sizeof(wire::SequencerGrant)), "a grant of another length");
  const auto granted =
      wire::read_reply<sequencer_calls::Granted>({}, all.substr(0, sizeof(wire::SequencerGrant)));
  if (!granted) return;
  const wire::SequencerGrant& grant = granted->grant;
  std::string_view rest = all.substr(sizeof(wire::SequencerGrant));
  std::uint32_t count = 0;
  if (rest.size() < sizeof count) return;
  std::memcpy(&count, rest.data(), sizeof count);
  rest.remove_prefix(sizeof count);
  if (count == 0) return;
  std::uint64_t word = 0;
  for (; rest.size() >= sizeof word; rest.remove_prefix(sizeof word)) {
    std::memcpy(&word, rest.data(), sizeof word);
    const auto range = check_answer(word, grant.epoch, count);
    if (!range) continue;
    want(!wire::sequencer_sealed(word), "numbers of a sealed epoch");
    want(range->epoch == grant.epoch && wire::sequencer_epoch(word) == grant.epoch,
         "numbers of another epoch");
    want(range->count == count && range->first == wire::sequencer_counter(word),
         "other numbers than were taken");
    want(range->first <= wire::kSequencerEnd && count <= wire::kSequencerEnd - range->first,
         "numbers beyond the end");
    const auto next = check_answer(word + count, grant.epoch, count);
    want(!next || next->first == range->first + count, "a number twice, or left out");
  }
}

}  // namespace
}  // namespace espalier::sequencer

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::sequencer::run(data, size);
  return 0;
}
