// SPDX-License-Identifier: Apache-2.0
// The call of a transaction over several objects, and its bytes.
//
//   request   objects times: name bytes (2), name;  steps times: StepHead, key, value
//   reply     for each get, in the order of steps: FoundHead, value
//
// A condition's value stands in the place of a put's. Each object is named once. A numbered
// transaction is done once, however often it is requested (store/numbered_clients.hpp):
//
//   request   RequestNumbers;  objects and steps as above
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
  std::uint64_t version;  // of a condition on the version; else 0
  std::uint32_t value_bytes;
  std::uint16_t key_bytes;
  std::uint8_t object;     // index of its name
  std::uint8_t kind;       // catalog::StepKind
  std::uint8_t condition;  // ConditionKind, of a check; else 0
  std::uint8_t reserved[7];
};
static_assert(sizeof(StepHead) == 24 && std::has_unique_object_representations_v<StepHead>);
static_assert(offsetof(StepHead, value_bytes) == 8 && offsetof(StepHead, key_bytes) == 12);
static_assert(offsetof(StepHead, object) == 14 && offsetof(StepHead, kind) == 15);
static_assert(offsetof(StepHead, condition) == 16);

struct FoundHead {
  std::uint64_t version;      // of the item; 0: none
  std::uint32_t value_bytes;  // likewise
  std::uint32_t found;        // 1 or 0
};
static_assert(sizeof(FoundHead) == 16 && std::has_unique_object_representations_v<FoundHead>);
static_assert(offsetof(FoundHead, value_bytes) == 8 && offsetof(FoundHead, found) == 12);

/// Bytes of the payload of a request or a reply: keys and values, names and heads.
inline constexpr std::uint32_t kTransactionMessageMax = (std::uint32_t{1} << 20) + (64u << 10);

struct TransactReply {
  std::uint64_t version = 0;  ///< of its writes; 0: none
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

struct ClientReply {
  std::uint64_t client = 0;

  static constexpr void fields(auto& self, auto& message) { message.version(self.client); }
};

/// The operations of TransactionClient.
enum class ClientWish : std::uint32_t {
  made = 0,       ///< make a client
  made_kept = 1,  ///< make one whose program keeps its id
  forgotten = 2,  ///< forget one
};

/// Makes or forgets a client, whose transactions have numbers.
struct TransactionClient {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::transaction_client,
      .name = "transaction_client",
      .summary = "answers the id of a new client, whose transactions have numbers; or forgets one",
      .right = wire::Right::write,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = ClientReply;

  std::uint32_t wish = 0;
  std::uint64_t client = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.argument(self.wish, "0 for a new one, 1 for one that is kept, 2 to forget one");
    message.fixed(self.client, "the client that is to be forgotten, else 0");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    const bool forgets = wish == static_cast<std::uint32_t>(ClientWish::forgotten);
    const bool good = wish <= 2 && forgets == (client != 0);
    return good ? std::nullopt : std::optional(wire::Fault{wish});
  }
};

struct RequestNumbers {
  std::uint64_t client;
  std::uint64_t number;        // above `acknowledged`, by 256 at most
  std::uint64_t acknowledged;  // no number up to this one will be repeated
};
static_assert(sizeof(RequestNumbers) == 24);
static_assert(std::has_unique_object_representations_v<RequestNumbers>);
static_assert(offsetof(RequestNumbers, number) == 8);
static_assert(offsetof(RequestNumbers, acknowledged) == 16);

struct OnceReply {
  std::uint64_t version = 0;  ///< of its writes; 0: none
  bool whole = false;         ///< false: its reads were too long to be kept, and are left out
  std::string_view found;

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.version);
    message.flag(self.whole, wire::kFound);
    message.rest(self.found, "FoundHead and value for each get", kTransactionMessageMax);
  }
};

struct TransactOnce {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::transact_once,
      .name = "transact_once",
      .summary =
          "the same, once for each number of a client: one that was done gets its first answer",
      .right = wire::Right::write,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = OnceReply;

  std::uint32_t objects = 0;
  RequestNumbers numbers{};
  std::string_view bytes;

  static constexpr void fields(auto& self, auto& message) {
    message.argument(self.objects, "how many objects it names");
    message.fixed(self.numbers, "RequestNumbers");
    message.rest(self.bytes, "as of transact", kTransactionMessageMax,
                 sizeof(std::uint16_t) + sizeof(StepHead));
  }
  [[nodiscard]] Transact what() const { return {objects, bytes}; }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    if (numbers.client == 0 || numbers.number <= numbers.acknowledged) {
      return wire::Fault{0, "its number is none, or was acknowledged"};
    }
    return what().fault();
  }
};

}  // namespace espalier::object_calls
