// SPDX-License-Identifier: Apache-2.0
// What must hold of rows that are replaced while they are gathered, as checks that tests run on
// good tables and on broken ones.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "catalog/testing/recording_sink.hpp"
#include "kinds/embedding/gather_kits.hpp"
#include "kinds/embedding/small_reduction.hpp"
#include "kinds/embedding/testing/embedding_store.hpp"

namespace espalier::embedding {

/// A kernel in the middle of which the row that it reads is replaced, once.
struct ReplacedMidway {
  static inline EmbeddingTable* table = nullptr;
  static inline std::vector<std::byte> row;

  static void gather(const GatherPiece& piece) {
    // The first half of the columns as they are now, the second as they are then.
    GatherPiece half = piece;
    half.dimension = piece.dimension / 2;
    const GatherKernel kernel = scalar_gather().kernel(EmbeddingType::fp32, Fold::add);
    kernel(half);
    std::vector<float> before(piece.after, piece.after + half.dimension);
    if (table != nullptr) {
      EmbeddingTable& replaced = *std::exchange(table, nullptr);
      EXPECT_TRUE(replaced.replace(0, row));
    }
    kernel(piece);
    std::copy(before.begin(), before.end(), piece.after);
  }
};

/// A table of one row, which the first gather by `kit` replaces in its middle.
struct MidwayScene {
  MidwayScene() {
    EXPECT_TRUE(table->append(row_of(*table, 1)));
    ReplacedMidway::table = table.get();
    ReplacedMidway::row = row_of(*table, 2);
    kit.kernels[0][0] = &ReplacedMidway::gather;
  }
  EmbeddingStore store;
  const std::shared_ptr<EmbeddingTable> table = store.create({64});
  GatherKit kit = scalar_gather();
};

/// Whether a row is whole that is replaced in the middle of a gather.
inline bool row_replaced_midway_is_whole() {
  MidwayScene scene;
  const auto found = reduced(*scene.table, {{0}, {0}, {}, {}, Reduction::sum}, scene.kit);
  return found == std::vector<float>(64, 2);
}

/// The same of a reduction that needs no window.
inline bool small_row_replaced_midway_is_whole() {
  MidwayScene scene;
  const OwnWork work{{0}, {0}, {}, {}, Reduction::sum};
  std::vector<float> found(64);
  SmallReduction small;
  const bool fits = SmallReduction::fits(*scene.table, work.get());
  const bool begun = small.begin(*scene.table, work.ids).has_value();
  static_cast<void>(small.fold(*scene.table, work.get(), found, scene.kit));
  return fits && begun && found == std::vector<float>(64, 2);
}

/// Whether gathers beside replacements see whole rows: each has one value in all of its columns,
/// and a bag of one row twice is that twice, or the sum of two whole ones.
inline bool gathers_see_whole_rows(EmbeddingType type, int replacements) {
  EmbeddingStore store;
  const auto table = store.create({64, type});
  constexpr std::uint32_t kRows = 8;
  std::vector<std::vector<std::byte>> values;
  for (int v = 0; v < 100; ++v) values.push_back(row_of(*table, static_cast<float>(v)));
  for (std::uint32_t row = 0; row < kRows; ++row) EXPECT_TRUE(table->append(values[0]));
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (int i = 0; i < replacements; ++i) {
      const auto row = static_cast<std::uint64_t>(i) % kRows;
      EXPECT_TRUE(table->replace(row, values[static_cast<std::size_t>(i) % 100]));
      if (i % 1000 == 999) {
        EXPECT_TRUE(table->append(values[0]));
      }
    }
    over = true;
  });
  OwnWork work;
  for (std::uint32_t i = 0; i < 100; ++i) work.ids.push_back(i % kRows);
  work.offsets = {0, 1, 3, 50};
  std::vector<float> results(work.offsets.size() * 64);
  bool whole = true;
  do {
    EXPECT_TRUE(reduce(*table, work.get(), results));
    for (std::size_t bag = 0; bag < work.offsets.size(); ++bag) {
      for (std::size_t c = 1; c < 64; ++c) whole &= results[bag * 64 + c] == results[bag * 64];
    }
  } while (!over);
  writer.join();
  return whole && audit(*table).empty();
}

/// Whether readers see rows, and replacements of rows, once their records are durable, in the order
/// of these, and none before; whether a copy waits for what was handed over; and whether a table
/// that is dropped meanwhile forgets what waits.
inline bool rows_are_seen_once_they_are_durable() {
  catalog::RecordingSink sink(catalog::RecordingSink::Durable::by_hand);
  EmbeddingStore store;
  store.catalog.record_to(&sink);
  const auto table = store.create({8});  // record 1
  const auto value_of = [&](std::uint64_t row) {
    std::vector<float> values(8);
    table->copy_rows(row, std::as_writable_bytes(std::span(values)));
    return values[7];
  };
  bool good = table->append(row_of(*table, 1)) == 0u;     // 2
  good = good && table->append(row_of(*table, 2)) == 1u;  // 3
  good = good && table->rows() == 0 && table->all_rows() == 2;
  good = good && !table->replace(0, row_of(*table, 3));  // readers do not see it
  sink.make_durable(2);
  good = good && table->rows() == 1 && value_of(0) == 1;
  good = good && table->replace(0, row_of(*table, 4)).has_value();  // 4
  good = good && table->replace(0, row_of(*table, 5)).has_value();  // 5
  const auto recorded = table->recorded();
  good = good && value_of(0) == 1 && !table->shows(recorded) && audit(*table).empty();
  sink.make_durable(4);
  good = good && table->rows() == 2 && value_of(0) == 4 && !table->shows(recorded);
  sink.make_durable();
  good = good && value_of(0) == 5 && table->shows(recorded);
  good = good && table->append(row_of(*table, 6)) == 2u && table->replace(1, row_of(*table, 7));
  table->set_dropped();
  sink.make_durable();
  return good && table->rows() == 2 && value_of(1) == 2 && table->shows(table->recorded());
}

/// Whether a table that is renamed while an append or a replacement waits for its turn is not
/// written by the name that it had.
inline bool nothing_is_written_by_an_old_name() {
  EmbeddingStore store;
  const auto table = store.create({8});
  EXPECT_TRUE(table->append(row_of(*table, 1)));
  catalog::RecordingSink sink;
  std::uint32_t renames = 0;
  sink.when_reserved = [&] {  // the writer has no lock yet
    std::string name = "other";
    table->set_renamed(name, ++renames);
  };
  table->record_to(&sink);
  const auto is_refused = [](const auto& done) {
    return !done && done.error().code == Code::not_found;
  };
  const auto named = [&] { return renames + 1; };
  bool good = is_refused(table->append(row_of(*table, 2), named()));
  good = is_refused(table->replace(0, row_of(*table, 3), named())) && good;
  sink.when_reserved = nullptr;
  good = good && sink.records().empty() && table->rows() == 1;
  good = good && table->append(row_of(*table, 4), named()) == 1u;
  good = good && table->replace(0, row_of(*table, 5), named()).has_value();
  good = good && is_refused(table->append(row_of(*table, 6), named() - 1));
  table->record_to(nullptr);
  return good && sink.rooms() == 0;
}

/// Whether the record of an append is handed over before a reader sees its rows.
inline bool records_come_before_rows() {
  EmbeddingStore store;
  const auto table = store.create({8});
  catalog::RecordingSink sink;
  bool too_late = false;
  sink.when_handed_over = [&](std::string_view) { too_late |= table->rows() != 0; };
  table->record_to(&sink);
  EXPECT_TRUE(table->append(row_of(*table, 1)));
  table->record_to(nullptr);
  return !too_late && sink.records().size() == 1;
}

}  // namespace espalier::embedding
