// SPDX-License-Identifier: Apache-2.0
// The calls of embedding tables: what is asked of one, and what is answered.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kinds/embedding/format.hpp"
#include "wire/call_codec.hpp"
#include "wire/one_sided.hpp"

namespace espalier::embedding_calls {

// Of wire::FieldKind, which has no name for it yet.
inline constexpr wire::FieldKind kEmbeddingField{10};

[[nodiscard]] inline std::optional<wire::Fault> fault_of_shape(
    const embedding::EmbeddingShape& shape) {
  if (embedding::is_shape(shape)) return std::nullopt;
  return wire::Fault{shape.dimension,
                     "the dimension is a multiple of 8, up to 1024; types are 1 to 4"};
}

// --- replies -------------------------------------------------------------------------------------

/// An embedding table by the number that its node gave it, and by which renames it has its name.
/// Requests by that number say how many renames there were: so one that was renamed later is not
/// read, or written, by a name that it has no more.
struct Opened {
  std::uint32_t id = 0;
  embedding::EmbeddingShape shape{};
  std::uint64_t renames = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.id);
    message.read_version(self.renames);
    message.fixed(self.shape);
  }
  [[nodiscard]] static Opened of(const auto& table) { return of(table, 0); }
  /// `since`: how many renames there had been before it was looked up.
  [[nodiscard]] static Opened of(const auto& table, std::uint32_t since) {
    return {table.id(), table.shape(), std::uint64_t{table.rename()} << 32 | since};
  }
  [[nodiscard]] std::uint32_t since() const { return static_cast<std::uint32_t>(renames); }
  /// That by which it has its name; 0: of its making.
  [[nodiscard]] std::uint32_t own() const { return static_cast<std::uint32_t>(renames >> 32); }
  [[nodiscard]] std::optional<wire::Fault> fault() const { return fault_of_shape(shape); }
};

struct Numbers {
  embedding::EmbeddingNumbers numbers{};

  static constexpr void fields(auto& self, auto& message) { message.fixed(self.numbers); }
};

/// As many rows as were asked to be, from this one on.
struct Appended {
  std::uint64_t first = 0;

  static constexpr void fields(auto& self, auto& message) { message.version(self.first); }
};

struct Replaced {
  static constexpr void fields(auto&, auto&) {}
};

/// Floats, 4 bytes each: those of one bag behind those of the other.
struct Reduced {
  std::string_view results;

  static constexpr void fields(auto& self, auto& message) {
    message.rest(self.results, "the results", embedding::kResultBytesMax);
  }
};

/// By which number ids are renumbered.
struct Grouped {
  std::uint32_t grouping = 0;

  static constexpr void fields(auto& self, auto& message) { message.version(self.grouping); }
};

/// Ids by the grouping of that number, 4 bytes each.
struct Renumbered {
  std::uint32_t grouping = 0;
  std::string_view ids;

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.grouping);
    message.rest(self.ids, "renumbered ids", embedding::kRenumberBytesMax);
  }
};

/// A row of fields (wire/one_sided.hpp), one of them an EmbeddingPlace.
struct ReadsOpened {
  std::string_view described;

  static constexpr void fields(auto& self, auto& message) { message.rest(self.described); }
};

/// What a request says of names: how many renames there had been when its object was opened, and 1;
/// 0: nothing.
inline constexpr std::string_view kNamedWords =
    "0, or 1 more than the renames that there were when it was opened";
[[nodiscard]] constexpr std::uint32_t named_since(std::uint32_t renames) {
  return renames + 1;  // catalog::kRenamesMax is below the highest
}

// --- requests ------------------------------------------------------------------------------------

struct Create {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::embedding_create,
      .name = "embedding_create",
      .summary = "makes an empty embedding table; answers its number and EmbeddingShape",
      .right = wire::Right::admin,
      .object = wire::Names::by_name,
      .at_device = wire::AtDevice::relayed,
      .changes = true,
      .opens = true};
  using Reply = Opened;

  std::string_view name;
  embedding::EmbeddingShape shape{};
  std::uint32_t durability = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the embedding table's name");
    message.argument(self.durability, wire::kDurabilityWords);
    message.fixed(self.shape, "EmbeddingShape");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    const auto wrong = wire::fault_of_durability(durability);
    return wrong ? wrong : fault_of_shape(shape);
  }
};

struct Open {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::embedding_open,
      .name = "embedding_open",
      .summary = "answers an embedding table's number and EmbeddingShape",
      .right = wire::Right::read,
      .object = wire::Names::by_name,
      .at_device = wire::AtDevice::relayed,
      .opens = true};
  using Reply = Opened;

  std::string_view name;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the embedding table's name");
  }
};

struct Info {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::embedding_info,
                                       .name = "embedding_info",
                                       .summary = "answers an embedding table's numbers",
                                       .right = wire::Right::read,
                                       .object = wire::Names::by_id,
                                       .at_device = wire::AtDevice::relayed};
  using Reply = Numbers;

  std::uint32_t table = 0;
  std::uint32_t named = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.table, "the embedding table's id");
    message.argument(self.named, kNamedWords);
  }
};

struct Append {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::embedding_append,
      .name = "embedding_append",
      .summary = "appends rows, all or none; answers the number of the first",
      .right = wire::Right::write,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = Appended;

  std::uint32_t table = 0;
  std::string_view rows;
  std::uint32_t named = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.table, "the embedding table's id");
    message.argument(self.named, kNamedWords);
    message.rest(self.rows, "rows as they are stored, up to 1 MiB", embedding::kAppendBytesMax);
  }
};

struct Replace {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::embedding_replace,
                                       .name = "embedding_replace",
                                       .summary = "replaces a row that is there",
                                       .right = wire::Right::write,
                                       .object = wire::Names::by_id,
                                       .at_device = wire::AtDevice::relayed,
                                       .changes = true};
  using Reply = Replaced;

  std::uint32_t table = 0;
  std::uint64_t row = 0;
  std::string_view bytes;
  std::uint32_t named = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.table, "the embedding table's id");
    message.argument(self.named, kNamedWords);
    message.fixed(self.row, "which row");
    message.rest(self.bytes, "the row as it is stored", 4096);
  }
};

/// Read by each side for itself: a reply points into memory that only one of them has.
struct Reduce {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::embedding_reduce,
      .name = "embedding_reduce",
      .summary = "reduces bags of rows; answers dimension floats for each bag, or one",
      .right = wire::Right::read,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed};
  using Reply = Reduced;

  std::uint32_t table = 0;
  embedding::ReduceShape shape{};
  std::string_view vector;
  std::string_view offsets;
  std::string_view ids;
  std::string_view weights;
  std::uint32_t named = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.table, "the embedding table's id");
    message.argument(self.named, kNamedWords);
    message.fixed(self.shape, "ReduceShape");
    message.sized(self.vector, std::size_t{self.shape.vector} * 4, "the vector");
    message.sized(self.offsets, std::size_t{self.shape.bags} * 4, "offsets of bags");
    message.sized(self.ids, std::size_t{self.shape.ids} * 4, "ids");
    message.sized(self.weights, std::size_t{self.shape.weights} * 4, "weights");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    for (const std::uint8_t byte : shape.reserved) {
      if (byte != 0) return wire::Fault{byte};
    }
    return std::nullopt;
  }
};

/// Of several tables: likewise. The header names the first one.
struct ReduceTables {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::embedding_reduce_tables,
      .name = "embedding_reduce_tables",
      .summary =
          "reduces bags of rows of several tables; answers floats as embedding_reduce, those "
          "of one table behind the other",
      .right = wire::Right::read,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed};
  using Reply = Reduced;

  std::uint32_t first = 0;
  embedding::TablesShape shape{};
  std::string_view tables;
  std::string_view data;
  std::uint32_t named = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.first, "the first embedding table's id");
    message.argument(self.named, kNamedWords);
    message.fixed(self.shape, "TablesShape");
    message.sized(self.tables, std::size_t{self.shape.tables} * sizeof(embedding::TableShape),
                  "a TableShape for each");
    message.rest(self.data, "of each: the vector, offsets, ids, weights");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    for (const std::uint8_t byte : shape.reserved) {
      if (byte != 0) return wire::Fault{byte};
    }
    if (shape.tables == 0 || shape.tables > embedding::kTablesMax) {
      return wire::Fault{shape.tables, "a request is of 1 to 128 tables"};
    }
    return std::nullopt;
  }
};

/// Read by each side for itself, as it takes many steps at a node.
struct Group {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::embedding_group,
      .name = "embedding_group",
      .summary = "keeps the sums of groups of rows, in place of other groups; answers their number",
      .right = wire::Right::admin,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = Grouped;

  std::uint32_t table = 0;
  embedding::GroupsShape shape{};
  std::string_view rows;
  std::string_view sizes;
  std::uint32_t named = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.table, "the embedding table's id");
    message.argument(self.named, kNamedWords);
    message.fixed(self.shape, "GroupsShape");
    message.sized(self.rows, std::size_t{self.shape.rows} * 4, "ids of the groups' rows");
    message.sized(self.sizes, std::size_t{self.shape.groups}, "how many rows each has");
  }
};

/// Likewise.
struct Renumber {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::embedding_renumber,
      .name = "embedding_renumber",
      .summary = "answers the ids of rows as the table's groups number them, and the grouping",
      .right = wire::Right::read,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed};
  using Reply = Renumbered;

  std::uint32_t table = 0;
  std::string_view ids;
  std::uint32_t named = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.table, "the embedding table's id");
    message.argument(self.named, kNamedWords);
    message.rest(self.ids, "ids, 4 bytes each, up to 4096", embedding::kRenumberBytesMax);
  }
};

struct OpenReads {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::one_sided_embedding,
                                       .name = "one_sided_embedding",
                                       .summary = "as one_sided_open, of an embedding table",
                                       .right = wire::Right::read,
                                       .object = wire::Names::all};
  using Reply = ReadsOpened;

  std::uint32_t table = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.table, "the id of the embedding table to be read");
  }
};

using All = wire::CallList<Create, Open, Info, Append, Replace, Reduce, ReduceTables, Group,
                           Renumber, OpenReads>;

}  // namespace espalier::embedding_calls
