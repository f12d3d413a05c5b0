// SPDX-License-Identifier: Apache-2.0
// The calls on objects of all kinds: listing and dropping them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "espalier/kind.hpp"
#include "wire/call_codec.hpp"

namespace espalier::object_calls {

/// The number of a kind, or 0 for all: whether there is such a kind is no matter.
[[nodiscard]] inline std::optional<wire::Fault> fault_of_kind(std::uint32_t kind) {
  return kind > 255 ? std::optional(wire::Fault{kind}) : std::nullopt;
}

struct Drop {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::object_drop,
      .name = "object_drop",
      .summary =
          "removes a map, table or sequencer; its memory comes back when nobody reads it "
          "any more, and queries of it that run end with dropped",
      .right = wire::Right::admin,
      .object = wire::Names::by_name,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = wire::Nothing;

  std::string_view name;
  std::uint32_t kind = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the object's name");
    message.argument(self.kind, "its kind, 0 for any");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const { return fault_of_kind(kind); }
};
[[nodiscard]] inline Drop drop(std::string_view name, ObjectKind kind) {
  return {name, static_cast<std::uint32_t>(kind)};
}

struct Listed {
  std::uint64_t count = 0;
  std::string_view
      items;  ///< as those of a scan; the value of each is a wire::ObjectEntry and more

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.count);
    message.rest(self.items);
  }
};

struct List {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::object_list,
      .name = "object_list",
      .summary =
          "answers the names and numbers of all objects, and an ObjectEntry of each with "
          "its MapShape, its TableFacts and schema, or its SequencerFacts, as items",
      .right = wire::Right::read,
      .at_device = wire::AtDevice::relayed};
  using Reply = Listed;

  std::uint32_t kind = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.argument(self.kind, "a kind, 0 for all");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const { return fault_of_kind(kind); }
};
[[nodiscard]] inline List list(ObjectKind kind) { return {static_cast<std::uint32_t>(kind)}; }

using All = wire::CallList<Drop, List>;

}  // namespace espalier::object_calls
