// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/greeting.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"

namespace espalier::fabric::ofi {

using wire::ofi::Greeting;

void write_greeting(SendBuffer& out, wire::ofi::RecordKind kind, std::span<const std::byte> data) {
  wire::ofi::RecordHead head{};
  head.kind = static_cast<std::uint8_t>(kind);
  head.bytes = static_cast<std::uint32_t>(sizeof(Greeting) + data.size());
  const auto room = out.room(head.bytes);
  ESPALIER_ASSERT(room == head.bytes);
  std::byte* const payload = out.add(head);
  base::store_plain(payload, Greeting{wire::ofi::kMagic, wire::ofi::kFormat, 0});
  std::copy(data.begin(), data.end(), payload + sizeof(Greeting));
}

std::optional<std::span<const std::byte>> read_greeting(const Record& record,
                                                        std::size_t data_max) {
  if (record.payload.size() < sizeof(Greeting)) return {};
  const auto greeting = base::load_plain<Greeting>(record.payload.data());
  if (greeting.magic != wire::ofi::kMagic || greeting.format != wire::ofi::kFormat) return {};
  const auto data = record.payload.subspan(sizeof(Greeting));
  if (data.size() > data_max) return {};
  return data;
}

}  // namespace espalier::fabric::ofi
