// SPDX-License-Identifier: Apache-2.0
// The calls on objects of all kinds: listing them, their statistics, dropping and renaming them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "catalog/transaction_calls.hpp"
#include "espalier/kind.hpp"
#include "wire/call_codec.hpp"
#include "wire/object.hpp"
#include "wire/samples.hpp"

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

struct Renaming {
  std::uint8_t displaced;  // what becomes of the object that has the name: espalier::Displaced
  std::uint8_t reserved[7];
};
static_assert(sizeof(Renaming) == 8 && std::has_unique_object_representations_v<Renaming>);

struct Rename {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::object_rename,
      .name = "object_rename",
      .summary =
          "gives an embedding table another name in one step; what has that name refuses it, "
          "exchanges names with it, or is dropped",
      .right = wire::Right::admin,
      .object = wire::Names::by_name,
      .at_device = wire::AtDevice::relayed,
      .changes = true,
      .second_name = sizeof(Renaming)};
  using Reply = wire::Nothing;

  std::string_view name;
  std::uint32_t kind = 0;
  Renaming how{};
  std::string_view to;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the object's name");
    message.argument(self.kind, "its kind, 0 for any");
    message.fixed(self.how, "Renaming");
    message.rest(self.to, "its new name, 1 to 255 bytes", wire::kObjectNameBytesMax, 1);
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    for (const std::uint8_t byte : how.reserved) {
      if (byte != 0) return wire::Fault{byte};
    }
    if (how.displaced > 2) return wire::Fault{how.displaced};
    return fault_of_kind(kind);
  }
};
[[nodiscard]] inline Rename rename(std::string_view name, std::string_view to, ObjectKind kind,
                                   Displaced displaced) {
  return {name, static_cast<std::uint32_t>(kind), {static_cast<std::uint8_t>(displaced), {}}, to};
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
      .at_device = wire::AtDevice::relayed,
      .tells_of_objects = true};
  using Reply = Listed;

  std::uint32_t kind = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.argument(self.kind, "a kind, 0 for all");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const { return fault_of_kind(kind); }
};
[[nodiscard]] inline List list(ObjectKind kind) { return {static_cast<std::uint32_t>(kind)}; }

struct Sampled {
  std::uint64_t count = 0;  ///< of the selected objects, those left out included
  std::string_view items;   ///< format: wire/samples.hpp

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.count);
    message.rest(self.items, "items", wire::kSamplesBytesMax);
  }
};

struct Samples {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::object_samples,
      .name = "object_samples",
      .summary =
          "answers the statistics of objects of whatever kind as labelled samples, of those "
          "that take most memory, and how many objects there are",
      .right = wire::Right::read,
      .at_device = wire::AtDevice::relayed,
      .tells_of_objects = true};
  using Reply = Sampled;

  std::string_view name;  ///< empty: all
  wire::SamplesWanted wanted{};

  static constexpr void fields(auto& self, auto& message) {
    message.key(self.name, "one object by name, or nothing for all", 0, wire::kObjectNameBytesMax);
    message.fixed(self.wanted, "SamplesWanted");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    if (wanted.objects_max == 0 || wanted.objects_max > wire::kSampledObjectsMax) {
      return wire::Fault{wanted.objects_max};
    }
    if (wanted.reserved_byte != 0) return wire::Fault{wanted.reserved_byte};
    if (wanted.reserved != 0) return wire::Fault{wanted.reserved};
    return std::nullopt;
  }
};

using All = wire::CallList<Drop, Rename, List, Samples, Transact>;

}  // namespace espalier::object_calls
