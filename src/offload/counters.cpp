// SPDX-License-Identifier: Apache-2.0
// Sequencers: counters that hand out numbers, each once [DPU §6.2].
#include "offload/call.hpp"

namespace espalier::offload {
namespace {

Next sequence(Call& call) {
  if (call.argument() == 0) return call.fail({Code::invalid_argument, 0, 0});
  const auto first = call.services().sequencers.take(call.key(), call.argument());
  if (!first) return call.fail(first.error());
  wire::ResponseHeader header{};
  header.version = *first;
  return call.answer(header);
}

const Offload kCounterOffloads[] = {
    {.id = wire::OffloadId::sequence,
     .name = "sequence",
     .format = "key: the sequencer's name, 1 to 255 bytes; argument: how many numbers",
     .summary = "answers the first of so many numbers in a row that nobody else gets",
     .right = Right::write,
     .limits = {.key_bytes_min = 1, .key_bytes_max = 255},
     .object = Names::by_name,
     .step = sequence},
};

}  // namespace

std::span<const Offload> counter_offloads() { return kCounterOffloads; }

}  // namespace espalier::offload
