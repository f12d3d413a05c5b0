// SPDX-License-Identifier: Apache-2.0
#include "offload/reads.hpp"

#include "offload/connection.hpp"
#include "offload/payload_reader.hpp"

namespace espalier::offload {

ReadSource read_source(Call& call, std::shared_ptr<HeldSnapshot> holds) {
  ReadSource source{.snapshot = std::move(holds), .payload = call.payload()};
  if (!call.at_snapshot()) {
    source.snapshot = nullptr;
    return source;
  }
  PayloadReader reader(source.payload);
  const auto number = reader.take<std::uint64_t>();
  source.payload = reader.rest();
  if (!source.snapshot && reader.good()) source.snapshot = call.connection().snapshot(number);
  source.found = source.snapshot != nullptr && source.snapshot->map() == call.map_number();
  return source;
}

}  // namespace espalier::offload
