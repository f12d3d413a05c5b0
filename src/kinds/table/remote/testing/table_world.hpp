// SPDX-License-Identifier: Apache-2.0
// A simulated world in which a table is read by READs while its host drops it, makes another of its
// memory, or gives that back: as a check that tests run on good readers and on broken ones.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "fabric/sim/testing/two_ends.hpp"
#include "kinds/table/remote/table_reader.hpp"
#include "kinds/table/row_values.hpp"
#include "kinds/table/testing/random_table.hpp"

namespace espalier::place {

/// How often the rare was reached.
struct TableWorldCounts {
  std::uint64_t whole = 0;    // readings to the end
  std::uint64_t dropped = 0;  // that ended with `dropped`
  std::uint64_t midway = 0;   // of these, after some rows
};

class TableWorld {
 public:
  static constexpr std::uint64_t kRows = 9'000;  // more than two pages of them

  TableWorld(std::uint64_t seed, const fabric::sim::Faults& faults)
      : random_(seed),
        world_(seed, faults),
        host_(world_.add_node("host")),
        client_(world_.add_node("client")),
        here_(*client_),
        there_(*host_) {
    auto region = host_->regions().offer({store_.region.at(0), store_.region.bytes()},
                                         fabric::RemoteRights::read, 0);
    region_ = *std::move(region);
    connected_ = host_->listen("host").has_value() && connect(world_, here_, there_, "host");
  }

  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] base::Random& random() { return random_; }
  [[nodiscard]] fabric::sim::World& world() { return world_; }
  [[nodiscard]] table::TableStore& store() { return store_; }

  /// A table whose rows say which they are, and whose.
  std::shared_ptr<table::Table> make(std::int64_t mark, std::uint64_t rows = kRows) {
    auto made = store_.create(schema_);
    std::vector<std::byte> bytes(rows * schema_.row_bytes());
    for (std::uint64_t i = 0; i < rows; ++i) {
      std::byte* const row = bytes.data() + i * schema_.row_bytes();
      (void)store_integer(schema_.column(0), row, static_cast<std::int64_t>(i));
      (void)store_integer(schema_.column(1), row, mark);
    }
    if (!made->append(bytes)) std::abort();
    return made;
  }
  [[nodiscard]] TableTarget target_of(const table::Table& table) {
    wire::BufferHeader header{};
    std::memcpy(&header, store_.region.at(table.header_offset()), sizeof header);
    return {table.header_offset(), table.id(), header.generation, schema_.row_bytes()};
  }
  [[nodiscard]] std::unique_ptr<TableReader> reader_of(const TableTarget& target) {
    return std::make_unique<TableReader>(
        *here_.pair, here_.sends, region_.remote(), client_->properties(), target, [this] {
          client_->wait(1'000'000);
          return here_.pair->state() != fabric::QueuePair::State::error;
        });
  }
  /// What is wrong with a piece; empty if nothing is.
  [[nodiscard]] std::string wrong_with(const TableReader::Piece& piece, std::int64_t mark) const {
    std::uint64_t number = piece.first_row;
    for (std::size_t at = 0; at < piece.rows.size(); at += schema_.row_bytes(), ++number) {
      const std::byte* const row = piece.rows.data() + at;
      const std::int64_t id = load_integer(schema_.column(0), row);
      const std::int64_t of = load_integer(schema_.column(1), row);
      if (id == static_cast<std::int64_t>(number) && of == mark) continue;
      return "row " + std::to_string(number) + " came as row " + std::to_string(id) + " of table " +
             std::to_string(of);
    }
    return "";
  }

 private:
  base::Random random_;
  table::TableStore store_;
  fabric::sim::World world_;
  std::unique_ptr<fabric::Endpoint> host_;
  std::unique_ptr<fabric::Endpoint> client_;
  fabric::Registration region_;
  fabric::sim::End here_;
  fabric::sim::End there_;
  const table::Schema schema_ =
      table::schema_of("id i64 not null, mark i64 not null, rest char(488) not null");
  bool connected_ = false;
};

/// Reads a range of a table while it is dropped at some moment, by chance. Returns what is wrong.
inline std::string wrong_with_reading(std::uint64_t seed, const fabric::sim::Faults& faults,
                                      TableWorldCounts& counts) {
  TableWorld world(seed, faults);
  if (!world.connected()) return "";  // such faults: nothing was read
  base::Random& random = world.random();
  std::shared_ptr<table::Table> table = world.make(1);
  std::shared_ptr<table::Table> other;
  const TableTarget target = world.target_of(*table);
  // Most readings are long, so that the drop comes in the middle of some.
  const bool whole = random.chance(0.7);
  const std::uint64_t first = random.below(whole ? 500 : TableWorld::kRows);
  const std::uint64_t end =
      whole ? TableWorld::kRows : first + 1 + random.below(TableWorld::kRows - first);
  if (random.chance(0.8)) {
    const bool again = random.chance(0.7);
    // While few or many READs are under way.
    const std::uint64_t within_ns = random.chance(0.7) ? 60'000 : 400'000;
    world.world().after(random.below(within_ns), [&, again] {
      const std::string name = table->name();
      table.reset();
      if (!world.store().tables.drop(name)) std::abort();
      if (again) other = world.make(2);
      if (!again) world.store().pool.trim();
    });
  }
  const auto reader = world.reader_of(target);
  const auto ended = [&](const Error& error, bool some) -> std::string {
    if (error.code == Code::connection_lost) return "";
    if (error.code != Code::dropped || table) return "it ended with " + message(error);
    ++counts.dropped;
    counts.midway += some ? 1 : 0;
    return "";
  };
  const auto rows = reader->take_count();
  if (!rows) return ended(rows.error(), false);
  if (*rows != TableWorld::kRows) return "there are " + std::to_string(*rows) + " rows";
  if (const auto sought = reader->seek(first, end); !sought) return ended(sought.error(), false);
  for (std::uint64_t next = first;;) {
    const auto piece = reader->next();
    if (!piece) return ended(piece.error(), next != first);
    if (piece->rows.empty()) {
      ++counts.whole;
      return next == end ? "" : "it ended at row " + std::to_string(next);
    }
    if (piece->first_row != next) return "row " + std::to_string(next) + " did not come next";
    if (const std::string wrong = world.wrong_with(*piece, 1); !wrong.empty()) return wrong;
    next += piece->rows.size() / target.row_bytes;
  }
}

}  // namespace espalier::place
