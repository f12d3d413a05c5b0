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

// Returns whether one of them was read.
Result<bool> TopologyController::read_trees() {
  bool any = false;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const auto moves = nodes_[i]->moves();
    if (!moves) return std::unexpected(moves.error());
    bool stale = !*moves;
    if (*moves) {
      for (const MappingChange& change : **moves) stale = !followers_[i].moved(change) || stale;
    }
    if (!stale) continue;
    const auto read = followers_[i].read(nodes_[i]->view(), nodes_[i]->source());
    if (!read) return std::unexpected(read.error());
    any = true;
  }
  return any;
}

// What one tree takes of the room that all share is taken from the others, so either all tables
// keep their shape or none does. Returns whether they are to be told whole.
Result<bool> TopologyController::compile(std::vector<EntryChange>& changes) {
  std::vector<dataplane::TreeImage> images;
  for (const IndexFollower& follower : followers_) images.push_back(follower.image());
  std::vector<IndexTables> tables;
  for (auto& each : dataplane::compile(images, *dataplane::limits_of(topology_))) {
    tables.push_back(std::move(each.tables));
  }
  if (generation_ != 0) {
    std::vector<IndexTables> kept;
    double most = 0;
    for (std::size_t i = 0; i < images.size(); ++i) {
      kept.push_back(dataplane::retargeted(followers_[i].tables(), images[i]));
      most = std::max(most, dataplane::reads_left(images[i], kept[i]) -
                                dataplane::reads_left(images[i], tables[i]));
    }
    if (most < IndexFollower::kLoss) tables = std::move(kept);
  }
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

// What a switch holds it is asked first: one that began anew has forgotten all. Returns whether it
// has what was compiled last.
bool TopologyController::update(std::size_t number, std::span<const EntryChange> changes,
                                Round& round) {
  SwitchState& state = states_[number];
  TopologySwitch& to = *switches_[number];
  const auto held = to.ask("held", {});
  if (!held) {
    // While it is out of reach it may go on with what it has.
    state.current = false;
    return false;
  }
  if (*held == "0" && !state.has_none) state.current = state.filled = false;
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
    programs_ = dataplane::cut_program(keys, tables, topology_, generation_, hints);
  }
  return programs_[number];
}

bool TopologyController::all_current() const {
  return std::ranges::all_of(states_, [](const SwitchState& state) { return state.current; });
}

void TopologyController::restart_all(std::function<void(std::size_t number)> restart) {
  restart_ = std::move(restart);
  next_restart_ = 0;
}

void TopologyController::restart_next() {
  if (!restart_ || !all_current()) return;
  if (next_restart_ == switches_.size()) {
    restart_ = nullptr;
    return;
  }
  restart_(next_restart_);
  states_[next_restart_++].current = false;
}

}  // namespace espalier::place
