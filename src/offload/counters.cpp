// SPDX-License-Identifier: Apache-2.0
// Sequencers: counters that hand out numbers, each once [DPU §6.2].
#include "offload/engine.hpp"

namespace espalier::offload {
namespace {

void start_sequence(Engine& engine, Request& request) {
  if (request.header.argument == 0) return engine.fail(request, {Code::invalid_argument, 0, 0});
  const auto first = engine.services().sequencers.take(request.key(), request.header.argument);
  if (!first) return engine.fail(request, first.error());
  wire::ResponseHeader header{};
  header.version = *first;
  engine.answer(request, header);
}

const Offload kOffloads[] = {
    {.id = wire::OffloadId::sequence,
     .name = "sequence",
     .format = "key: the sequencer's name, 1 to 255 bytes; argument: how many numbers",
     .summary = "answers the first of so many numbers in a row that nobody else gets",
     .limits = {.key_bytes_min = 1, .key_bytes_max = 255},
     .start = start_sequence},
};

}  // namespace

std::span<const Offload> counter_offloads() { return kOffloads; }

}  // namespace espalier::offload
