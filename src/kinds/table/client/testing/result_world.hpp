// SPDX-License-Identifier: Apache-2.0
// Queries of a table over a simulated faulty fabric (link_world.hpp), whose rows the node writes
// into the client's memory: random pipelines over random rows, whose answers must equal those of
// the same run in one process. The client returns buffers late, in any order, several at a time,
// and ends some queries early.
//
// A seed decides all but how long helpers and timers of the node take.
//
// Thread: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/tests/testing/link_world.hpp"
#include "kinds/table/format/result_buffers.hpp"
#include "kinds/table/format/table_calls.hpp"
#include "kinds/table/offload/query_limits.hpp"
#include "kinds/table/offload/table_services.hpp"
#include "kinds/table/pipeline.hpp"
#include "kinds/table/pipeline_builder.hpp"
#include "kinds/table/snapshot_source.hpp"
#include "kinds/table/staged_run.hpp"
#include "kinds/table/table_object.hpp"
#include "kinds/table/testing/random_pipeline.hpp"

namespace espalier::client {

/// What happened in one or more worlds.
struct ResultsReached {
  LinkReached link{};
  std::uint64_t placed = 0;     // blocks
  std::uint64_t full = 0;       // buffers
  std::uint64_t all_out = 0;    // how often the client had all of them
  std::uint64_t chunks = 0;     // of rows, by the rings
  std::uint64_t cancelled = 0;  // queries
  std::uint64_t failed = 0;
};

class ResultWorld {
 public:
  ResultWorld(std::uint64_t seed, const LinkWorldOptions& options)
      : random_(seed), world_(seed, options), give_up_ns_(options.give_up_ms * 1'000'000) {}

  /// Returns the first mistake; empty: none.
  std::string run(std::uint32_t queries, ResultsReached& reached) {
    std::string wrong = world_.connect();
    if (wrong.empty()) wrong = begin();
    world_.plan_trouble(reached.link);
    for (; queries != 0 && wrong.empty(); --queries) wrong = query(reached);
    world_.count_resumed(reached.link);
    requests_.reset();
    return wrong;
  }

 private:
  struct Wanted {
    std::vector<std::byte> message;
    std::vector<std::byte> rows;
    bool fails = false;
  };

  std::string begin() {
    requests_.emplace(world_.rings(), 1);
    buffers_ = static_cast<std::uint32_t>(random_.between(1, 4));
    buffer_bytes_ = wire::kResultBufferBytesMin << random_.below(3);
    memory_ = *world_.connection().offer_memory(std::uint64_t{buffers_} * buffer_bytes_);
    const table::Schema schema = table::random_small_schema(random_);
    offload::Services& services = world_.node().services();
    table_ = *table::create_table(services.catalog(), services.store.pool, "t", schema);
    const auto rows = table::random_small_rows(random_, schema, random_.between(1, 12'000), 0);
    if (!table_->append({rows.row(0), rows.size() * schema.row_bytes()})) return "no rows";

    const wire::ResultOffer offer{memory_->remote.base, buffer_bytes_, buffers_,
                                  memory_->remote.key, 0};
    wire::CallMessage request;
    request.offload = wire::OffloadId::result_open;
    request.payload = base::bytes_of(offer);
    if (!requests_->begin(request)) return "cannot offer buffers";
    std::optional<Incoming> answer;
    if (std::string wrong = await(answer); !wrong.empty()) return wrong;
    return answer->header.code == 0 ? "" : "the offer was refused";
  }

  /// The next piece of the answer.
  std::string await(std::optional<Incoming>& piece) {
    const std::uint64_t until = world_.world().now_ns() + give_up_ns_;
    for (piece.reset(); !piece; piece = requests_->take_piece()) {
      if (world_.connection().lost()) return "lost";
      if (world_.world().now_ns() > until) return "stuck";
      world_.attend();
    }
    return {};
  }

  // All rows as they are, or anything.
  std::optional<Wanted> draw_query() {
    const table::Schema& schema = table_->schema();
    table::PipelineBuilder builder;
    if (random_.below(2) == 0) {
      builder = table::random_builder(random_, schema);
    } else {
      std::vector<table::PipelineBuilder::NodeId> columns;
      for (std::size_t i = 0; i < schema.columns().size(); ++i) {
        columns.push_back(builder.column(i));
      }
      builder.project(columns);
    }
    Wanted wanted;
    const auto message = builder.finish();
    if (!message) return std::nullopt;
    wanted.message = *message;
    auto pipeline = table::check_pipeline(wanted.message, schema);
    if (!pipeline ||
        !table::compile_regexes(*pipeline,
                                world_.node().services().part<offload::TableServices>().regexes)) {
      return std::nullopt;
    }
    table::SnapshotSource source(table_);
    table::RunOptions options;
    options.group_bytes = offload::QueryLimits::kGroupBytesOfOne;
    table::StagedRun run(*std::move(pipeline), source, options);
    for (auto state = table::RunState::running; state != table::RunState::done;) {
      state = run.step(4096);
      wanted.fails = state == table::RunState::failed;
      if (wanted.fails) return wanted;
      wanted.rows.insert(wanted.rows.end(), run.rows().begin(), run.rows().end());
      run.clear();
    }
    return wanted;
  }

  std::string query(ResultsReached& reached) {
    const auto wanted = draw_query();
    if (!wanted) return {};
    wire::CallMessage request;
    request.offload = wire::OffloadId::table_query;
    request.map = table_->id();
    request.argument = wire::kQueryIntoBuffers;
    request.payload = text_of(wanted->message);
    if (!requests_->begin(request)) return "cannot ask";
    rows_.clear();
    held_.clear();
    std::uint64_t pieces_left = random_.below(5) == 0 ? random_.below(6) : ~std::uint64_t{0};
    bool cancelled = false;
    for (;;) {
      std::optional<Incoming> piece;
      if (std::string wrong = await(piece); !wrong.empty()) return wrong;
      if (RemoteRequests::is_last(*piece)) return end(*wanted, *piece, cancelled, reached);
      if (std::string wrong = take(*piece, reached); !wrong.empty()) return wrong;
      const std::size_t count = std::min(rows_.size(), wanted->rows.size());
      if (!wanted->fails && (rows_.size() > wanted->rows.size() ||
                             !std::equal(rows_.begin(), rows_.end(), wanted->rows.begin()))) {
        return "other rows than those of the table, within the first " + std::to_string(count);
      }
      if (pieces_left == 0 && !cancelled) cancelled = requests_->cancel_begun();
      if (pieces_left != 0) --pieces_left;
      give_back();
    }
  }

  std::string take(const Incoming& piece, ResultsReached& reached) {
    const auto kind = static_cast<wire::ChunkKind>(piece.header.flags & wire::kChunkBits);
    if (kind == wire::ChunkKind::rows) {
      ++reached.chunks;
      add(std::as_bytes(std::span(piece.payload)));
      return {};
    }
    wire::ResultPlace place{};
    if (kind != wire::ChunkKind::placed || piece.payload.size() != sizeof place) {
      return "a piece of another kind";
    }
    std::memcpy(&place, piece.payload.data(), sizeof place);
    const bool there = place.buffer < buffers_ && place.offset <= buffer_bytes_ &&
                       place.bytes <= buffer_bytes_ - place.offset;
    if (!there) return "a place that is none";
    if (std::ranges::find(held_, place.buffer) != held_.end()) {
      return "a buffer was written that is the client's";
    }
    ++reached.placed;
    const std::byte* const at =
        memory_->at + std::size_t{place.buffer} * buffer_bytes_ + place.offset;
    add({at, place.bytes});
    if ((place.flags & wire::kBufferFull) != 0) {
      ++reached.full;
      held_.push_back(place.buffer);
      if (held_.size() == buffers_) ++reached.all_out;
    }
    return {};
  }
  void add(std::span<const std::byte> rows) { rows_.insert(rows_.end(), rows.begin(), rows.end()); }

  // Some of them, unless the node has none to go on with.
  void give_back() {
    if (held_.empty() || (held_.size() < buffers_ && random_.below(2) == 0)) return;
    std::vector<std::uint32_t> given;
    for (std::uint64_t left = random_.between(1, held_.size()); left != 0; --left) {
      const auto one = held_.begin() + static_cast<std::ptrdiff_t>(random_.below(held_.size()));
      given.push_back(*one);
      held_.erase(one);
    }
    // The node may write there from now on: neither its data nor this is valid for the client.
    for (const std::uint32_t buffer : given) {
      std::memset(memory_->at + std::size_t{buffer} * buffer_bytes_, 0xEE, buffer_bytes_);
    }
    wire::CallMessage request;
    request.offload = wire::OffloadId::result_return;
    request.payload = text_of(std::as_bytes(std::span(given)));
    while (!requests_->send_aside(request)) world_.attend();
  }

  std::string end(const Wanted& wanted, const Incoming& last, bool cancelled,
                  ResultsReached& reached) {
    if (last.header.code != 0) {
      reached.failed += wanted.fails ? 1 : 0;
      return wanted.fails ? "" : "refused: " + std::string(last.payload);
    }
    if (last.payload.size() < sizeof(wire::QueryNumbers)) return "an answer without numbers";
    add(std::as_bytes(std::span(last.payload)).subspan(sizeof(wire::QueryNumbers)));
    if (cancelled) {
      ++reached.cancelled;
      return {};
    }
    if (wanted.fails) return "no error";
    return rows_ == wanted.rows ? "" : "other rows than those of the table";
  }

  base::Random random_;
  LinkWorld world_;
  const std::uint64_t give_up_ns_;
  std::shared_ptr<table::Table> table_;
  std::optional<RemoteRequests> requests_;
  std::optional<NodeConnection::WritableMemory> memory_;
  std::uint32_t buffers_ = 0;
  std::uint32_t buffer_bytes_ = 0;
  std::vector<std::uint32_t> held_;  // buffers that the client has
  std::vector<std::byte> rows_;      // that came
};

}  // namespace espalier::client
