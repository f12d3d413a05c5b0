// SPDX-License-Identifier: Apache-2.0
// A simulated world in which bags of an embedding table are reduced by READs while its host appends
// and replaces rows, has its page list move, and drops it and makes another one of its memory,
// which waits for no lease: a check that tests run on good readers and on broken ones.
//
// A row has one value in all of its columns, which says when it was written, so that rows of which
// READs brought a part before and a part after a replacement are seen.
//
// Thread: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/random.hpp"
#include "fabric/sim/testing/two_ends.hpp"
#include "kinds/embedding/remote/bag_reader.hpp"
#include "kinds/embedding/testing/embedding_store.hpp"

namespace espalier::place {

struct EmbeddingWorldOptions {
  std::uint32_t dimension = 256;  // a row of many lines, and few rows a page: 2047
  EmbeddingType type = EmbeddingType::fp32;
  std::uint32_t first_rows = 2'030;
  std::uint32_t appended = 60;           // meanwhile, so that there is a page more
  std::uint64_t first_list_entries = 1;  // with two pages the list moves
  std::uint32_t requests = 40;
  std::uint32_t hot_rows = 8;    // that are asked for and replaced most
  std::uint32_t step_rows = 16;  // of one doorbell
  std::uint64_t replaced_every_ns = 20'000;
  double drops = 0;  // how likely the table goes at some moment
  /// The table that reuses its memory was made before, so that its page list is not overwritten.
  bool other_there = false;
};

/// How often the rare was reached.
struct EmbeddingWorldCounts {
  std::uint64_t answers = 0;
  std::uint64_t rereads = 0;    // rows
  std::uint64_t not_found = 0;  // of a table that was dropped
  std::uint64_t contended = 0;
  std::uint64_t lost = 0;   // requests without an answer, for the pair has failed
  std::uint64_t moved = 0;  // page lists
  std::uint64_t torn = 0;
  std::uint64_t reordered = 0;
};

class EmbeddingWorld {
 public:
  EmbeddingWorld(std::uint64_t seed, const fabric::sim::Faults& faults,
                 const EmbeddingWorldOptions& options)
      : options_(options),
        random_(seed),
        world_(seed, faults),
        host_(world_.add_node("host")),
        client_(world_.add_node("client")),
        here_(*client_),
        there_(*host_) {
    auto region = host_->regions().offer({store_.region.at(0), store_.region.bytes()},
                                         fabric::RemoteRights::read, 0);
    region_ = *std::move(region);
    table_ = make(kId);
    if (options.other_there) other_ = make(kId + 1);
    if (options.first_rows != 0) append(options.first_rows);
    connected_ = host_->listen("host").has_value() && connect(world_, here_, there_, "host");
    if (connected_) open();
  }
  ~EmbeddingWorld() {
    for (; !damaged_.empty(); damaged_.pop_back()) {
      base::store_shared(damaged_.back().first, damaged_.back().second);
    }
  }
  EmbeddingWorld(const EmbeddingWorld&) = delete;
  EmbeddingWorld& operator=(const EmbeddingWorld&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }
  [[nodiscard]] embedding::EmbeddingTable& table() { return *table_; }
  [[nodiscard]] fabric::sim::World& world() { return world_; }
  [[nodiscard]] BagReader& reader() { return *reader_; }

  /// Requests by chance, while the host works by chance. Returns what is wrong; empty: nothing.
  std::string run(EmbeddingWorldCounts& counts) {
    if (!connected_) return "";  // such faults: nothing was read
    work_after();
    if (random_.chance(options_.drops)) {
      world_.after(random_.below(2'000'000), [this] { replace_table(); });
    }
    std::string wrong;
    for (std::uint32_t i = 0; i < options_.requests && wrong.empty(); ++i) wrong = ask(counts);
    ended_ = true;
    counts.rereads += reader_->counts().rereads;
    counts.moved += moved_ ? 1 : 0;
    counts.torn += world_.counts().torn_reads;
    counts.reordered += world_.counts().reads_reordered;
    return wrong;
  }
  /// Stores a word in the table's header, behind what says which table it is, or in its page list;
  /// until the end of this.
  void damage(std::uint64_t offset, std::uint64_t word) {
    std::byte* const at = store_.region.at(table_->header_offset()) + 24 + offset;
    damaged_.emplace_back(at, base::load_shared<std::uint64_t>(at));
    base::store_shared(at, word);
  }
  /// One request. Requires: connected().
  TableResult<std::vector<float>> reduce(const embedding::ReductionWork& work) {
    std::vector<float> results(work.bags.offsets.size() *
                               embedding::result_width(work.reduction, table_options_.dimension));
    const auto reduced = reader_->reduce(work, results, [this] { return wait(); });
    if (!reduced) return std::unexpected(reduced.error());
    return results;
  }

 private:
  static constexpr std::uint32_t kId = 7;
  static constexpr float kForeign = 1e6F;  // of rows of the table that comes after

  std::unique_ptr<embedding::EmbeddingTable> make(std::uint32_t id) {
    table_options_ = {options_.dimension, options_.type};
    return embedding::EmbeddingTable::create(store_.pool, id, "t", table_options_,
                                             options_.first_list_entries)
        .value();
  }
  void open() {
    const auto target = EmbeddingTarget::read(table_->place(), store_.region.bytes()).value();
    port_.emplace(*here_.pair, here_.sends, region_.remote(), client_->properties());
    reader_.emplace(*port_, target,
                    BagReader::Options{.now_ns = [this] { return world_.now_ns(); },
                                       .step_rows = options_.step_rows});
    reader_->lease().granted(1, 1, world_.now_ns(), world_.now_ns());
  }
  // Renewals are answered immediately, and the host counts no lease: memory is reused immediately.
  bool wait() {
    if (reader_->lease().due(world_.now_ns())) reader_->lease().renewed(1, world_.now_ns());
    client_->wait(100'000);
    return here_.pair->state() != fabric::QueuePair::State::error && ++waits_ < kWaitsMax;
  }

  // --- what is asked -----------------------------------------------------------------------------

  std::string ask(EmbeddingWorldCounts& counts) {
    embedding::OwnWork work;
    const std::uint64_t bags = 1 + random_.below(30);
    for (std::uint64_t bag = 0; bag < bags; ++bag) {
      work.offsets.push_back(static_cast<std::uint32_t>(work.ids.size()));
      for (std::uint64_t rows = random_.below(4); rows != 0; --rows) {
        const bool hot = random_.chance(0.5);
        work.ids.push_back(
            static_cast<std::uint32_t>(random_.below(hot ? options_.hot_rows : values_.size())));
      }
    }
    work.reduction = random_.chance(0.5) ? Reduction::max : Reduction::min;
    const std::vector<std::size_t> before = sizes();
    const bool was_dropped = dropped_;
    waits_ = 0;
    const auto found = reduce(work.get());
    if (!found) return fault_of(found.error().error, counts);
    if (was_dropped) return "a table answers that was dropped before";
    ++counts.answers;
    for (std::size_t bag = 0; bag < bags; ++bag) {
      const std::string wrong = wrong_with(work, bag, *found, before);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }
  std::string fault_of(const Error& error, EmbeddingWorldCounts& counts) {
    if (error.code == Code::not_found && dropped_) {
      ++counts.not_found;
      ended_ = true;
      return "";
    }
    if (error.code == Code::contended) return ++counts.contended, "";
    if (error.code == Code::connection_lost && waits_ < kWaitsMax) return ++counts.lost, "";
    return "it ended with " + message(error);
  }
  /// Whether a bag came to what its rows had at some moment since it was asked for.
  std::string wrong_with(const embedding::OwnWork& work, std::size_t bag,
                         const std::vector<float>& found,
                         const std::vector<std::size_t>& before) const {
    const std::size_t dimension = options_.dimension;
    const float value = found[bag * dimension];
    for (std::size_t c = 1; c < dimension; ++c) {
      if (found[bag * dimension + c] != value) {
        return "bag " + std::to_string(bag) + " has " + std::to_string(value) + " and " +
               std::to_string(found[bag * dimension + c]) + " in one row";
      }
    }
    const std::size_t first = work.offsets[bag];
    const std::size_t end = bag + 1 < work.offsets.size() ? work.offsets[bag + 1] : work.ids.size();
    if (first == end) return value == 0 ? "" : "an empty bag is not zero";
    // Values rise as time goes on: so does what a bag comes to.
    bool is_one = false;
    float least = 0;
    float most = 0;
    for (std::size_t i = first; i < end; ++i) {
      const std::span<const float> values =
          std::span(values_[work.ids[i]]).subspan(before[work.ids[i]] - 1);
      is_one |= std::ranges::find(values, value) != values.end();
      const bool max = work.reduction == Reduction::max;
      const auto fold = [&](float a, float b) { return max ? std::max(a, b) : std::min(a, b); };
      least = i == first ? values.front() : fold(least, values.front());
      most = i == first ? values.back() : fold(most, values.back());
    }
    if (is_one && least <= value && value <= most) return "";
    return "bag " + std::to_string(bag) + " came as " + std::to_string(value) +
           ", and was never that";
  }
  [[nodiscard]] std::vector<std::size_t> sizes() const {
    std::vector<std::size_t> sizes;
    for (const auto& values : values_) sizes.push_back(values.size());
    return sizes;
  }

  // --- what the host does ------------------------------------------------------------------------

  void work_after() {
    world_.after(random_.below(options_.replaced_every_ns * 2), [this] {
      if (ended_) return;
      if (!dropped_) act();
      work_after();
    });
  }
  void act() {
    if (values_.size() < options_.first_rows + options_.appended && random_.chance(0.3)) {
      return append(8);
    }
    const bool hot = random_.chance(0.8);
    const std::uint64_t row = random_.below(hot ? options_.hot_rows : values_.size());
    const float value = ++last_value_;
    EXPECT_TRUE(table_->replace(row, embedding::row_of(*table_, value)));
    values_[row].push_back(value);
  }
  void append(std::uint32_t rows) {
    const std::uint64_t pages = table_->pages();
    std::vector<std::byte> bytes;
    for (std::uint32_t i = 0; i < rows; ++i) {
      values_.push_back({++last_value_});
      const auto row = embedding::row_of(*table_, last_value_);
      bytes.insert(bytes.end(), row.begin(), row.end());
    }
    EXPECT_TRUE(table_->append(bytes));
    moved_ |= pages <= options_.first_list_entries && table_->pages() > options_.first_list_entries;
  }
  void replace_table() {
    dropped_ = true;
    table_->set_dropped();
    const std::uint64_t rows = table_->rows();
    table_.reset();
    if (other_ == nullptr) other_ = make(kId + 1);
    const auto row = embedding::row_of(*other_, kForeign);
    std::vector<std::byte> bytes;
    for (std::uint64_t i = 0; i < rows; ++i) bytes.insert(bytes.end(), row.begin(), row.end());
    EXPECT_TRUE(other_->append(bytes));
  }

  static constexpr std::uint64_t kWaitsMax = 100'000;

  const EmbeddingWorldOptions options_;
  base::Random random_;
  embedding::EmbeddingStore store_{std::uint64_t{32} << 20};
  EmbeddingOptions table_options_;
  fabric::sim::World world_;
  std::unique_ptr<fabric::Endpoint> host_;
  std::unique_ptr<fabric::Endpoint> client_;
  fabric::Registration region_;
  fabric::sim::End here_;
  fabric::sim::End there_;
  std::unique_ptr<embedding::EmbeddingTable> table_;
  std::unique_ptr<embedding::EmbeddingTable> other_;
  std::optional<ReadPort> port_;
  std::optional<BagReader> reader_;
  bool connected_ = false;
  bool dropped_ = false;
  bool ended_ = false;
  bool moved_ = false;
  std::uint64_t waits_ = 0;
  float last_value_ = 0;
  std::vector<std::pair<std::byte*, std::uint64_t>> damaged_;
  std::vector<std::vector<float>> values_;  // of each row, in order
};

/// Runs one seed. Returns what is wrong, with the seed.
inline std::string wrong_with_bags_read(std::uint64_t seed, const fabric::sim::Faults& faults,
                                        const EmbeddingWorldOptions& options,
                                        EmbeddingWorldCounts& counts) {
  EmbeddingWorld world(seed, faults, options);
  const std::string wrong = world.run(counts);
  return wrong.empty() ? "" : "seed " + std::to_string(seed) + ": " + wrong;
}

}  // namespace espalier::place
