// SPDX-License-Identifier: Apache-2.0
#include "dataplane/index_lookup.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "base/prefetch.hpp"
#include "dataplane/planted_dataplane_bugs.hpp"

namespace espalier::dataplane {
namespace {

using base::planted;

constexpr std::uint64_t kTop = std::numeric_limits<std::uint64_t>::max();

// Walks sub-tables in the order of their keys; each is led to once.
class RunWriter {
 public:
  explicit RunWriter(const RangeTables& tables) : tables_(tables) {}

  std::vector<RangeRun> run() {
    write(0, 0, 0, tables_.preset);
    return std::move(runs_);
  }

 private:
  // The keys of one sub-table, which begin at `base`; `otherwise` is the result where it has no
  // entry.
  void write(std::size_t stage, std::uint32_t table, std::uint64_t base, std::uint32_t otherwise) {
    const auto& entries = tables_.stages[stage];
    const std::size_t below = tables_.stages.size() - 1 - stage;
    const auto shift = static_cast<std::uint32_t>(tables_.bits_per_stage * below);
    auto at = std::ranges::lower_bound(entries, table, {}, &RangeEntry::table);
    std::uint64_t cell = 0;
    for (; at != entries.end() && at->table == table; ++at) {
      if (cell != at->first) add(base + (cell << shift), otherwise);
      if (at->next == kDone) {
        add(base + (std::uint64_t{at->first} << shift), at->result);
      } else {
        write(stage + 1, at->next, base + (std::uint64_t{at->first} << shift), at->result);
      }
      cell = std::uint64_t{at->last} + 1;
    }
    if (cell != std::uint64_t{1} << tables_.bits_per_stage) add(base + (cell << shift), otherwise);
  }
  void add(std::uint64_t low, std::uint32_t result) {
    if (!runs_.empty() && runs_.back().result == result) return;
    runs_.push_back({low, result});
  }

  const RangeTables& tables_;
  std::vector<RangeRun> runs_;
};

/// Without a branch, which would be guessed wrong every other time: a `?:` may become one.
template <class T>
T if_holds(bool holds, T value) {
  return value & (T{0} - static_cast<T>(holds));
}

}  // namespace

std::vector<RangeRun> range_runs(const RangeTables& tables) { return RunWriter(tables).run(); }

IndexLookup::IndexLookup(const IndexTables& tables, base::Isa isa) : find_together_(form_of(isa)) {
  if (!tables.ways.empty()) add_root(tables);
  for (const NodeSet& set : tables.sets) {
    auto& into = sets_.emplace_back();
    into.nodes.reserve(set.size());
    for (const SetNode& node : set) {
      Node& made = into.nodes.emplace_back();
      made.lows[0] = 0;
      std::ranges::copy(node.pivots, made.lows.begin() + 1);
      made.ways = node.ways;
      into.way_counts.push_back(node.way_count);
    }
  }
}

void IndexLookup::add_root(const IndexTables& tables) {
  const std::vector<RangeRun> runs = range_runs(tables.root);
  for (const RangeRun& run : runs) {
    ways_.push_back(tables.ways[run.result]);
    results_.push_back(run.result);
  }
  // A key may be the largest number: what is behind the last run is the last run.
  const std::size_t filled = std::max(std::bit_ceil(runs.size()), kLowsTogether);
  ways_.resize(filled, ways_.back());
  results_.resize(filled, results_.back());
  const auto low_of = [&runs](std::size_t run) { return run < runs.size() ? runs[run].low : kTop; };
  std::size_t every = 1;  // how many runs a low of this level stands for
  for (; every == 1 || every < filled; every *= kLowsTogether) {
    const std::size_t sixteens = (filled / every + kLowsTogether - 1) / kLowsTogether;
    auto& level = levels_.emplace_back(sixteens * kLowsTogether);
    for (std::size_t i = 0; i < level.size(); ++i) level[i] = low_of(i * every);
  }
  top_last_ = static_cast<std::uint32_t>(filled / (every / kLowsTogether) - 1);
}

// The last run that begins at or below the key. The first one begins at 0.
std::size_t IndexLookup::run_of(std::uint64_t key) const {
  const auto& lows = levels_.front();
  std::size_t at = 0;
  for (std::size_t half = ways_.size() / 2; half != 0; half /= 2) {
    at += if_holds(lows[at + half] <= key, half);
  }
  return at;
}

// For a set without nodes: no walk goes there.
const IndexLookup::Node IndexLookup::kNoNodes{};

const IndexLookup::Node* IndexLookup::nodes_of(std::size_t set) const {
  const bool has_some = set < sets_.size() && !sets_[set].nodes.empty();
  return has_some ? sets_[set].nodes.data() : &kNoNodes;
}

Found IndexLookup::find(std::uint64_t key) const {
  const Way& way = ways_[run_of(key)];
  return go_down({way.address, 0, way.next}, key);
}

Found IndexLookup::find_from(std::uint32_t cursor, std::uint64_t key) const {
  return go_down({0, 0, cursor}, key);
}

Found IndexLookup::go_down(Found found, std::uint64_t key) const {
  while (found.next != kNoNode && found.sets < sets_.size()) {
    const Node& node = sets_[found.sets].nodes[found.next];
    // Of 16 lows in four steps, each of which halves them.
    std::size_t at = 0;
    for (std::size_t half = kWaysMax / 2; half != 0; half /= 2) {
      const bool left = planted(Bug::separator_off_by_one) && node.lows[at + half] == key;
      at += if_holds(node.lows[at + half] <= key && !left, half);
    }
    found = {node.ways[at].address, found.sets + 1, node.ways[at].next};
  }
  return found;
}

// --- keys together -------------------------------------------------------------------------------

// Each step is the same few instructions for all keys of a burst, none of which waits for what
// another one needs: the processor works on several at a time, where one alone waits for each load.
struct IndexLookup::Walk {
  /// A key that goes on, and where.
  struct Sought {
    std::uint64_t key;
    std::uint32_t number;
    std::uint32_t node;  // of the set that is looked at
  };

  std::span<Found> found;
  std::array<Sought, kTogether> sought;  // those that go on

  /// The nodes of a set, as far as these tables have it.
  struct Layer {
    Layer(const IndexLookup& in, std::size_t set)
        : nodes(in.nodes_of(set)), is_here(set < in.sets_.size()) {}
    const Node* nodes;
    bool is_here;  // else ways into it lead to another switch
  };

  void begin(std::uint64_t key, std::uint32_t number, std::uint32_t cursor, const Layer& first) {
    const Node& node = first.nodes[cursor];
    base::prefetch_line(node.lows.data());
    base::prefetch_line(node.lows.data() + 8);
    sought[number] = {key, number, cursor};
  }
  /// Takes a way; returns how many walks go on, of which `on` did before. The result is written at
  /// each step, and walks that go on are counted by a sum: a branch on how deep the tables know a
  /// key would be mispredicted. So a node's line is prefetched even if the walk does not go on.
  std::size_t take(std::uint64_t key, std::uint32_t number, const Way& way, std::size_t sets,
                   const Layer& layer, std::size_t on) {
    const std::uint32_t next = way.next;
    const bool goes_on =
        static_cast<bool>(static_cast<int>(next != kNoNode) & static_cast<int>(layer.is_here));
    const Node& node = layer.nodes[if_holds(goes_on, next)];
    base::prefetch_line(node.lows.data());
    base::prefetch_line(node.lows.data() + 8);
    found[number].address = way.address;
    found[number].sets = static_cast<std::uint32_t>(sets);
    found[number].next = next;
    sought[on] = {key, number, next};
    return on + (goes_on ? 1 : 0);
  }

  template <class Form>
  [[gnu::always_inline]] static std::uint32_t run_of(const IndexLookup& in, std::uint64_t key) {
    std::size_t level = in.levels_.size() - 1;
    const std::uint32_t top = Form::last_reached(in.levels_[level].data(), key);
    std::uint32_t at = std::min(top, in.top_last_);
    while (level-- != 0) {
      at *= static_cast<std::uint32_t>(kLowsTogether);
      at += Form::last_reached(in.levels_[level].data() + at, key);
    }
    return at;
  }

  template <class Form>
  [[gnu::always_inline]] static void run(const IndexLookup& in,
                                         std::span<const std::uint32_t> cursors,
                                         std::span<const std::uint64_t> keys,
                                         std::span<Found> found) {
    Walk walk;
    walk.found = found;
    std::array<const Way*, kTogether> ways;
    Layer layer(in, 0);
    std::size_t on = 0;
    if (cursors.empty()) {
      for (std::size_t i = 0; i < keys.size(); ++i) ways[i] = &in.ways_[run_of<Form>(in, keys[i])];
      for (std::uint32_t i = 0; i < keys.size(); ++i) {
        on = walk.take(keys[i], i, *ways[i], 0, layer, on);
      }
    } else {
      for (std::uint32_t i = 0; i < keys.size(); ++i) walk.begin(keys[i], i, cursors[i], layer);
      on = keys.size();
    }
    for (std::size_t set = 1; on != 0; ++set) {
      const std::size_t count = std::exchange(on, 0);
      for (std::size_t i = 0; i < count; ++i) {
        const Sought& each = walk.sought[i];
        const Node& node = layer.nodes[each.node];
        ways[i] = &node.ways[Form::last_reached(node.lows.data(), each.key)];
        base::prefetch_line(ways[i]);
      }
      layer = Layer(in, set);
      for (std::size_t i = 0; i < count; ++i) {
        const Sought each = walk.sought[i];
        on = walk.take(each.key, each.number, *ways[i], set, layer, on);
      }
    }
  }

  static void run_plain(const IndexLookup& in, std::span<const std::uint32_t> cursors,
                        std::span<const std::uint64_t> keys, std::span<Found> found) {
    run<PlainLows>(in, cursors, keys, found);
  }
#if defined(ESPALIER_HAVE_X86_LOWS)
  ESPALIER_LOWS_AVX2 static void run_avx2(const IndexLookup& in,
                                          std::span<const std::uint32_t> cursors,
                                          std::span<const std::uint64_t> keys,
                                          std::span<Found> found) {
    run<Avx2Lows>(in, cursors, keys, found);
  }
  ESPALIER_LOWS_AVX512 static void run_avx512(const IndexLookup& in,
                                              std::span<const std::uint32_t> cursors,
                                              std::span<const std::uint64_t> keys,
                                              std::span<Found> found) {
    run<Avx512Lows>(in, cursors, keys, found);
  }
#endif
};

IndexLookup::FindTogether IndexLookup::form_of(base::Isa isa) {
#if defined(ESPALIER_HAVE_X86_LOWS)
  if (isa == base::Isa::avx512) return Walk::run_avx512;
  if (isa == base::Isa::avx2) return Walk::run_avx2;
#endif
  static_cast<void>(isa);
  return Walk::run_plain;
}

void IndexLookup::find_together(std::span<const std::uint64_t> keys, std::span<Found> found) const {
  if (planted(Bug::separator_off_by_one)) {
    for (std::size_t i = 0; i < keys.size(); ++i) found[i] = find(keys[i]);
    return;
  }
  find_together_(*this, {}, keys, found);
}

void IndexLookup::find_together_from(std::span<const std::uint32_t> cursors,
                                     std::span<const std::uint64_t> keys,
                                     std::span<Found> found) const {
  if (planted(Bug::separator_off_by_one)) {
    for (std::size_t i = 0; i < keys.size(); ++i) found[i] = find_from(cursors[i], keys[i]);
    return;
  }
  find_together_(*this, cursors, keys, found);
}

void IndexLookup::set_address(const EntryPlace& place, std::uint64_t address) {
  if (place.set == EntryPlace::kRoot) {
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (results_[i] == place.node) ways_[i].address = address;
    }
    return;
  }
  Set& set = sets_[place.set];
  Node& node = set.nodes[place.node];
  // Behind the last way all are the last way.
  const bool is_last = place.way + 1 == set.way_counts[place.node];
  const auto begin = node.ways.begin() + place.way;
  const auto end = is_last ? node.ways.end() : begin + 1;
  for (auto way = begin; way != end; ++way) way->address = address;
}

}  // namespace espalier::dataplane
