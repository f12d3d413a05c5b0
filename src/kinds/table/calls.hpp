// SPDX-License-Identifier: Apache-2.0
// The calls of tables: create and open, append, read and query, load pipelines, and open the memory
// by which a client writes rows and receives results.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kinds/table/format/landing.hpp"
#include "kinds/table/format/pipeline.hpp"
#include "kinds/table/format/result_buffers.hpp"
#include "kinds/table/format/table.hpp"
#include "kinds/table/format/table_calls.hpp"
#include "wire/call_codec.hpp"
#include "wire/one_sided.hpp"

namespace espalier::table_calls {

/// Most pipelines of one session.
inline constexpr std::uint32_t kPipelinesMax = 256;

/// For appends: empty, or the number of a reservation.
[[nodiscard]] inline std::optional<wire::Fault> fault_of_reservation(std::string_view key) {
  if (key.empty() || key.size() == sizeof(std::uint64_t)) return std::nullopt;
  return wire::Fault{0, "the key is no reservation's number"};
}

// --- replies -------------------------------------------------------------------------------------

/// A table by its number at the node.
struct Opened {
  std::uint32_t id = 0;
  std::string_view description;  ///< TableFacts, its schema, and CipherFacts if it is encrypted

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.id);
    message.rest(self.description);
  }
};

struct Appended {
  std::uint64_t first_row = 0;

  static constexpr void fields(auto& self, auto& message) { message.version(self.first_row); }
};

struct Reserved {
  std::uint64_t reservation = 0;
  std::string_view slots;  ///< each a wire::ReservedSlots

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.reservation);
    message.rest(self.slots);
  }
};

/// The last message of a read or query; chunks come before it.
struct RowsEnd {
  std::uint64_t rows_sent = 0;
  wire::QueryNumbers numbers{};
  std::string_view rows;  ///< the last ones of a query

  static constexpr void fields(auto& self, auto& message) {
    message.version(self.rows_sent);
    message.fixed(self.numbers);
    message.rest(self.rows);
  }
};

/// A chunk of a query's rows, written into a buffer of the client.
struct RowsPlaced {
  wire::ResultPlace place{};

  static constexpr void fields(auto& self, auto& message) { message.fixed(self.place); }
};

struct Loaded {
  std::uint64_t pipeline = 0;  ///< its number in the session

  static constexpr void fields(auto& self, auto& message) { message.version(self.pipeline); }
};

struct Dropped {
  std::uint64_t count = 0;

  static constexpr void fields(auto& self, auto& message) { message.version(self.count); }
};

struct WindowOpened {
  wire::LandingGrant grant{};

  static constexpr void fields(auto& self, auto& message) { message.fixed(self.grant); }
};

/// A row of fields (wire/one_sided.hpp); TablePlace is drawn in kinds/table/format/table.hpp.
struct ReadsOpened {
  std::string_view described;

  static constexpr void fields(auto& self, auto& message) { message.rest(self.described); }
};

// --- tables --------------------------------------------------------------------------------------

struct Create {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::table_create,
      .name = "table_create",
      .summary = "makes an empty table; answers its number, TableFacts and schema",
      .right = wire::Right::admin,
      .object = wire::Names::by_name,
      .at_device = wire::AtDevice::relayed,
      .changes = true,
      .opens = true};
  using Reply = Opened;

  std::string_view name;
  std::uint32_t flags = 0;
  std::string_view schema;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the table's name");
    message.argument(self.flags, "1 encrypted; 2 none, 4 async, 6 sync of its own");
    message.rest(self.schema, "its schema", wire::kSchemaBytesMax);
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    if (flags >> wire::kCreateDurabilityShift <= wire::kDurabilityMax) return std::nullopt;
    return wire::Fault{flags, "an unknown flag"};
  }
};

struct Open {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::table_open,
                                       .name = "table_open",
                                       .summary = "answers a table's number, TableFacts and schema",
                                       .right = wire::Right::read,
                                       .object = wire::Names::by_name,
                                       .at_device = wire::AtDevice::relayed,
                                       .opens = true};
  using Reply = Opened;

  std::string_view name;

  static constexpr void fields(auto& self, auto& message) {
    message.name(self.name, "the table's name");
  }
};

struct OpenReads {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::one_sided_table,
                                       .name = "one_sided_table",
                                       .summary = "as one_sided_open, of a table",
                                       .right = wire::Right::read,
                                       .object = wire::Names::all};
  using Reply = ReadsOpened;

  std::uint32_t table = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.table, "the id of the table to be read");
  }
};

// --- appending -----------------------------------------------------------------------------------

struct Append {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::table_append,
      .name = "table_append",
      .summary = "appends all rows or none; answers the number of the first",
      .right = wire::Right::write,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::relayed,
      .changes = true};
  using Reply = Appended;

  std::uint32_t table = 0;
  std::string_view reservation;
  std::string_view rows;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.table, "the table's id");
    message.key(self.reservation, "of an encrypted table, a reservation's number", 0,
                sizeof(std::uint64_t));
    message.rest(self.rows, "whole rows");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    return fault_of_reservation(reservation);
  }
};

struct Reserve {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::table_reserve,
      .name = "table_reserve",
      .summary =
          "reserves slots of an encrypted table for one append; answers the reservation's "
          "number, and where they lie",
      .right = wire::Right::write,
      .object = wire::Names::by_id,
      .changes = true};
  using Reply = Reserved;

  std::uint32_t table = 0;
  std::uint32_t rows = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.table, "the table's id");
    message.argument(self.rows, "how many rows");
  }
};

struct OpenWindow {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::landing_open,
      .name = "landing_open",
      .summary = "gives this session a window of memory to WRITE; answers a LandingGrant",
      .right = wire::Right::write};
  using Reply = WindowOpened;

  std::uint64_t bytes = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.fixed(self.bytes, "how many the client wants to write");
  }
};

struct CloseWindow {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::landing_close,
                                       .name = "landing_close",
                                       .summary = "takes a window back",
                                       .right = wire::Right::write};
  using Reply = wire::Nothing;

  std::uint64_t window = 0;

  static constexpr void fields(auto& self, auto& message) {
    message.fixed(self.window, "the window's number");
  }
};

struct Commit {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::table_commit,
      .name = "table_commit",
      .summary = "appends all rows that lie in a window, or none; answers the number of the first",
      .right = wire::Right::write,
      .object = wire::Names::by_id,
      .changes = true};
  using Reply = Appended;

  std::uint32_t table = 0;
  std::string_view reservation;
  wire::LandedRows rows{};

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.table, "the table's id");
    message.key(self.reservation, "of an encrypted table, a reservation's number", 0,
                sizeof(std::uint64_t));
    message.fixed(self.rows, "LandedRows");
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    return fault_of_reservation(reservation);
  }
};

// --- reading -------------------------------------------------------------------------------------

struct Read {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::table_read,
      .name = "table_read",
      .summary = "reads rows as they lie; chunks of RowsPlace and rows, then QueryNumbers",
      .right = wire::Right::read,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::by_kind};
  using Reply = RowsEnd;

  std::uint32_t table = 0;
  wire::RowsWanted rows{};

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.table, "the table's id");
    message.fixed(self.rows, "RowsWanted");
  }
};

struct Query {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::table_query,
      .name = "table_query",
      .summary =
          "runs it beside the memory; chunks of result rows, then QueryNumbers and the last "
          "rows",
      .right = wire::Right::read,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::by_kind,
      .secret_key = true};
  using Reply = RowsEnd;

  std::uint32_t table = 0;
  std::uint32_t options = 0;
  std::string_view keys;
  std::string_view pipeline;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.table, "the table's id");
    message.argument(self.options, "1 into buffers, and twice the milliseconds that it may take");
    message.key(self.keys, "RunKeys, if it needs any", 0, sizeof(wire::RunKeys));
    message.rest(self.pipeline, "a pipeline", wire::kPipelineBytesMax);
  }
};

struct LoadPipeline {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::pipeline_load,
      .name = "pipeline_load",
      .summary = "checks a pipeline and keeps it for this session; answers its number",
      .right = wire::Right::read,
      .object = wire::Names::by_id,
      .at_device = wire::AtDevice::by_kind};
  using Reply = Loaded;

  std::uint32_t table = 0;
  std::string_view pipeline;

  static constexpr void fields(auto& self, auto& message) {
    message.object(self.table, "the table's id");
    message.rest(self.pipeline, "a pipeline", wire::kPipelineBytesMax);
  }
};

struct DropPipelines {
  static constexpr wire::CallRow kCall{.id = wire::OffloadId::pipeline_drop,
                                       .name = "pipeline_drop",
                                       .summary = "forgets them; answers how many there were",
                                       .right = wire::Right::read,
                                       .at_device = wire::AtDevice::here};
  using Reply = Dropped;

  std::string_view numbers;

  static constexpr void fields(auto& self, auto& message) {
    message.rest(self.numbers, "numbers of pipelines, 8 bytes each",
                 kPipelinesMax * sizeof(std::uint64_t), sizeof(std::uint64_t));
  }
};

struct OfferBuffers {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::result_open,
      .name = "result_open",
      .summary =
          "offers buffers of the client's, into which queries that answer to the same "
          "response ring may write their rows",
      .right = wire::Right::read};
  using Reply = wire::Nothing;

  wire::ResultOffer offer{};

  static constexpr void fields(auto& self, auto& message) {
    message.fixed(self.offer, "ResultOffer");
  }
};

struct ReturnBuffers {
  static constexpr wire::CallRow kCall{
      .id = wire::OffloadId::result_return,
      .name = "result_return",
      .summary = "gives full buffers of the same response ring back, all or none",
      .right = wire::Right::read};
  using Reply = wire::Nothing;

  std::string_view numbers;

  static constexpr void fields(auto& self, auto& message) {
    message.rest(self.numbers, "numbers of buffers, 4 bytes each",
                 wire::kResultBuffersMax * sizeof(std::uint32_t), sizeof(std::uint32_t));
  }
  [[nodiscard]] std::optional<wire::Fault> fault() const {
    if (numbers.size() % sizeof(std::uint32_t) == 0) return std::nullopt;
    return wire::Fault{0, "numbers of buffers have 4 bytes each"};
  }
};

using All =
    wire::CallList<Create, Open, OpenReads, Append, Reserve, OpenWindow, CloseWindow, Commit, Read,
                   Query, LoadPipeline, DropPipelines, OfferBuffers, ReturnBuffers>;

}  // namespace espalier::table_calls
