// SPDX-License-Identifier: Apache-2.0
#include "index/topology_controller.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "dataplane/hit_share.hpp"
#include "dataplane/retarget.hpp"

namespace espalier::place {

using dataplane::EntryChange;
using dataplane::IndexTables;

TopologyController::TopologyController(dataplane::TopologyBudget topology,
                                       std::vector<TopologyNode*> nodes,
                                       std::vector<TopologySwitch*> switches,
                                       std::function<std::uint64_t()> now_ns)
    : topology_(std::move(topology)),
      nodes_(std::move(nodes)),
      switches_(std::move(switches)),
      now_ns_(std::move(now_ns)),
      stale_(nodes_.size(), true),
      states_(switches_.size()) {
  ESPALIER_ASSERT(nodes_.size() == topology_.ways.size());
  ESPALIER_ASSERT(switches_.size() == topology_.switches.size());
  ESPALIER_ASSERT(dataplane::limits_of(topology_).has_value());
  for (const TopologyNode* const node : nodes_) {
    const dataplane::HintTerms terms = node->hints();
    followers_.emplace_back(node->keys(), terms.prefix, terms.base, dataplane::TableLimits{});
  }
}

Result<TopologyController::Round> TopologyController::round() {
  Round done;
  if (const auto followed = follow_nodes(); !followed) return std::unexpected(followed.error());
  const auto reshaped = read_trees();
  if (!reshaped) return std::unexpected(reshaped.error());
  std::vector<EntryChange> changes;
  if (*reshaped) {
    const auto compiled = compile(changes);
    if (!compiled) return std::unexpected(compiled.error());
    done.compiled = *compiled;
  } else {
    for (IndexFollower& follower : followers_) {
      const auto moved = follower.changes();
      changes.insert(changes.end(), moved->begin(), moved->end());
    }
  }
  if (done.compiled) changes.clear();
  if (done.compiled || !changes.empty()) programs_.clear();
  done.changes = changes.size();
  const auto parts = dataplane::cut_changes(changes, topology_);
  for (std::size_t number = 0; number < switches_.size(); ++number) {
    if (!update(number, parts[number], done)) ++done.out_of_reach;
  }
  if (const auto ended = end_generation_before(); !ended) return std::unexpected(ended.error());
  restart_next();
  return done;
}

Result<void> TopologyController::follow_nodes() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto moves = nodes_[i]->moves();
    if (!moves) return std::unexpected(moves.error());
    if (!*moves) stale_[i] = true;
    if (*moves) {
      for (const MappingChange& change : **moves) {
        if (!followers_[i].moved(change)) stale_[i] = true;
      }
    }
    auto counts = nodes_[i]->counts();
    if (!counts) return std::unexpected(counts.error());
    if (counts->empty()) continue;
    followers_[i].count_by(*std::move(counts));
    counted_ = true;
  }
  return {};
}

// Returns whether tables are to be compiled: one of them was read, or leaves are read otherwise.
Result<bool> TopologyController::read_trees() {
  bool any = counted_;
  counted_ = false;
  const std::uint64_t now = now_ns_();
  if (read_ns_ != 0 && now - read_ns_ < read_every_ns_) return any;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!stale_[i]) continue;
    const auto read = followers_[i].read(nodes_[i]->view(), nodes_[i]->source());
    if (!read) return std::unexpected(read.error());
    stale_[i] = false;
    read_ns_ = std::max<std::uint64_t>(now, 1);
    any = true;
  }
  return any;
}

// All trees share the tables' room: room that one tree takes is taken from the others, so all
// tables keep their shape or none does. Returns whether they must be installed whole.
Result<bool> TopologyController::compile(std::vector<EntryChange>& changes) {
  std::vector<dataplane::TreeImage> images;
  std::vector<IndexTables> tables;
  does_([&] {
    for (const IndexFollower& follower : followers_) images.push_back(follower.image());
    tables = tables_of(images);
  });
  bool whole = false;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto changed = followers_[i].take(images[i], std::move(tables[i]));
    whole = whole || !changed;
    if (changed) changes.insert(changes.end(), changed->begin(), changed->end());
  }
  if (!whole) return false;
  if (const auto begun = begin_generation(); !begun) return std::unexpected(begun.error());
  return true;
}

// Those of these trees, or those that switches have where they are nearly as good.
std::vector<IndexTables> TopologyController::tables_of(
    std::span<const dataplane::TreeImage> images) const {
  std::vector<IndexTables> tables;
  for (auto& each : dataplane::compile(images, *dataplane::limits_of(topology_))) {
    tables.push_back(std::move(each.tables));
  }
  if (generation_ == 0) return tables;
  std::vector<IndexTables> kept;
  double most = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    kept.push_back(dataplane::retargeted(followers_[i].tables(), images[i]));
    most = std::max(most, dataplane::reads_left(images[i], kept[i]) -
                              dataplane::reads_left(images[i], tables[i]));
  }
  return most < IndexFollower::kLoss ? kept : tables;
}

// The first tables write the keys that the nodes came with.
Result<void> TopologyController::begin_generation() {
  for (SwitchState& state : states_) state.current = false;
  programs_.clear();
  if (generation_++ == 0) return {};
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (auto begun = nodes_[i]->begin_generation(); !begun) return begun;
    followers_[i].begin_generation(nodes_[i]->keys().redirect, nodes_[i]->hints().base);
  }
  before_ = true;
  before_ends_ns_ = 0;
  return {};
}

Result<void> TopologyController::end_generation_before() {
  const auto may_have_it = [](const SwitchState& state) { return state.filled && !state.current; };
  if (!before_ || std::ranges::any_of(states_, may_have_it)) return {};
  if (before_ends_ns_ == 0) before_ends_ns_ = now_ns_() + kLateReadsNs;
  if (now_ns_() < before_ends_ns_) return {};
  before_ = false;
  for (TopologyNode* const node : nodes_) {
    if (auto ended = node->end_generations_before(); !ended) return ended;
  }
  return {};
}

// First asks the switch what it holds: a restarted one has forgotten all. Returns whether it has
// the newest tables.
bool TopologyController::update(std::size_t number, std::span<const EntryChange> changes,
                                Round& round) {
  SwitchState& state = states_[number];
  TopologySwitch& to = *switches_[number];
  const auto held = to.ask("held", {});
  if (!held) {
    // While it is out of reach it may go on with what it has.
    state.current = state.restarts = false;
    return false;
  }
  if (*held == "0" && !state.has_none) state.current = state.filled = state.restarts = false;
  if (state.current && !changes.empty()) {
    state.current = to.ask("change", dataplane::to_text(changes)).has_value();
  }
  if (state.current) return true;
  const dataplane::SwitchProgram& whole = program(number);
  state.filled = true;
  if (!to.ask("put", whole.text())) return false;
  state.has_none = whole.maps().empty();
  state.current = true;
  ++round.installed;
  return true;
}

const dataplane::SwitchProgram& TopologyController::program(std::size_t number) {
  if (programs_.empty()) {
    std::vector<dataplane::MapKeys> keys;
    std::vector<IndexTables> tables;
    std::vector<dataplane::HintTerms> hints;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      keys.push_back(followers_[i].keys());
      tables.push_back(followers_[i].tables());
      hints.push_back(nodes_[i]->hints());
    }
    // A new redirect key is drawn for each generation, so no other controller's tables, which
    // switches may still have, are of one with this number.
    const std::uint32_t generation = keys.front().redirect;
    does_([&] {
      programs_ = dataplane::cut_program(keys, tables, topology_, generation, hints);
    });
  }
  return programs_[number];
}

bool TopologyController::all_current() const {
  return std::ranges::all_of(
      states_, [](const SwitchState& state) { return state.current && !state.restarts; });
}

void TopologyController::restart_all(std::function<void(std::size_t number)> restart,
                                     std::size_t first) {
  restart_ = std::move(restart);
  next_restart_ = first;
}

void TopologyController::restart_next() {
  if (!restart_ || !all_current()) return;
  if (next_restart_ == switches_.size()) {
    restart_ = nullptr;
    return;
  }
  restart_(next_restart_);
  states_[next_restart_++].restarts = true;
}

}  // namespace espalier::place
