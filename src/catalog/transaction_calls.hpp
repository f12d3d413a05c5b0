// SPDX-License-Identifier: Apache-2.0
// The call of a transaction over several objects, and its bytes.
//
//   request   objects times: name bytes (2), name;  steps times: StepHead, key, value
//   reply     for each get, in the order of steps: FoundHead, value
//
// A condition's value stands where a put's does. An object is named once.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "wire/call_codec.hpp"

namespace espalier::object_calls {

struct StepHead {
  std::uint64_t version;  // of a condition on one; else 0
  std::uint32_t value_bytes;
  std::uint16_t key_bytes;
  std::uint8_t object;     // which of the names, from 0 on
  std::uint8_t kind;       // catalog::StepKind
  std::uint8_t condition;  // ConditionKind, of a check; else 0
  std::uint8_t reserved[7];
};
static_assert(sizeof(StepHead) == 24 && std::has_unique_object_representations_v<StepHead>);
static_assert(offsetof(StepHead, value_bytes) == 8 && offsetof(StepHead, key_bytes) == 12);
static_assert(offsetof(StepHead, object) == 14 && offsetof(StepHead, kind) == 15);
static_assert(offsetof(StepHead, condition) == 16);

struct FoundHead {
  std::uint64_t version;      // of the item; 0 where there is none
  std::uint32_t value_bytes;  // likewise
  std::uint32_t found;        // 1 or 0
};
static_assert(sizeof(FoundHead) == 16 && std::has_unique_object_representations_v<FoundHead>);
static_assert(offsetof(FoundHead, value_bytes) == 8 && offsetof(FoundHead, found) == 12);

/// Bytes of a request's payload, and of a reply's: those of keys and values, names and heads.
inline constexpr std::uint32_t kTransactionMessageMax = (std::uint32_t{1} << 20) + (64u << 10);

struct TransactReply {
  std::uint64_t version = 0;  ///< of its writes; 0: it has none
  std::string_view found;

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.version);
    message.rest(self.found, "FoundHead and value for each get", kTransactionMessageMax);
  }
};

struct Transact {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::transact,
      .name = "transact",
      .summary =
          "reads, conditions and writes of several ordered and hash maps at one moment, all or "
          "none; answers what it read",
      .right = wire::Right::write,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = TransactReply;

  std::uint32_t objects = 0;
  std::string_view bytes;

  static constexpr void fields(auto& self, auto& message) {
    message.argument(self.objects, "how many objects it names");
    message.rest(self.bytes, "names; steps of StepHead, key and value", kTransactionMessageMax,
                 sizeof(std::uint16_t) + sizeof(StepHead));
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    const bool good = objects != 0 && objects <= 64;
    return good ? std::nullopt : std::optional(wire::Fault{objects});
  }
};

}  // namespace espalier::object_calls
