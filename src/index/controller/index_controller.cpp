// SPDX-License-Identifier: Apache-2.0
#include "index/controller/index_controller.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "dataplane/switch_control.hpp"
#include "dataplane/switch_program.hpp"

namespace espalier::client {

using dataplane::ControlClient;
using place::IndexFollower;

namespace {

constexpr std::chrono::milliseconds kLook(50);
/// Interval of keepalive requests to a switch during long operations: a silent holder is forgotten.
constexpr std::uint64_t kAskNs = dataplane::kHolderSilentNs / 6;
/// Timeouts of short requests, and of requests that are made beside another operation.
constexpr std::uint64_t kShortNs = 1'000'000'000;
constexpr std::uint64_t kBesideNs = 200'000'000;
/// A READ that a switch has redirected reaches the node within this time, or is lost.
constexpr std::uint64_t kLateReadsNs = 100'000'000;
/// Pause after a switch's timeout, and after a refusal of tables.
constexpr std::uint64_t kSlowRestsNs = 3'000'000'000;
constexpr std::uint64_t kRefusedRestsNs = 500'000'000;

}  // namespace

// Runs on another thread what may take longer than the lease, and keeps the lease meanwhile.
template <class Work>
auto IndexController::while_kept(const Work& work) {
  auto done = std::async(std::launch::async, work);
  while (done.wait_for(kLook) != std::future_status::ready) keep();
  return done.get();
}

IndexController::IndexController(Options options) : options_(std::move(options)) {
  for (const std::string& control : options_.controls) {
    switches_.emplace_back(control, options_.hops.empty() ? 0 : switches_.size());
  }
}

std::expected<IndexController::Did, IndexController::Fault> IndexController::round() {
  const auto changes = read_tree();
  if (!changes) return std::unexpected(changes.error());
  if (!*changes || !(*changes)->empty()) programs_.clear();
  if (!*changes) {
    if (const auto begun = begin_generation(); !begun) {
      return std::unexpected(lose_node(begun.error()));
    }
  }
  if (options_.has_card) send_root();
  const std::vector<std::string> texts =
      text_of(*changes ? std::span<const dataplane::EntryChange>(**changes)
                       : std::span<const dataplane::EntryChange>());
  Did did = Did::nothing;
  bool changed = false;
  std::optional<Fault> fault;
  for (Switch& each : switches_) {
    const auto done = update(each, texts[each.part]);
    if (done) did = std::max(did, *done);
    changed = changed || (done && *done == Did::changed);
    if (!done && !fault) fault = done.error();
  }
  if (changed) changes_ += (*changes)->size();
  if (const auto ended = end_generation_before(); !ended) {
    return std::unexpected(lose_node(ended.error()));
  }
  if (fault) return std::unexpected(*std::move(fault));
  return did;
}

void IndexController::clear() {
  for (Switch& each : switches_) {
    each.current = false;
    if (!each.client || !each.filled || base::monotonic_ns() < each.rests_until_ns) continue;
    if (send(each, "put", dataplane::SwitchProgram().text(), kShortNs)) each.filled = false;
  }
}

// --- the node ------------------------------------------------------------------------------------

std::expected<IndexFollower::Changes, IndexController::Fault> IndexController::read_tree() {
  if (!link_) {
    if (const auto opened = open_link(); !opened) {
      return std::unexpected(Fault{Fault::Side::node, opened.error(), {}, {}});
    }
  }
  if (const auto kept = link_->keep(); !kept) return std::unexpected(lose_node(kept.error()));
  if (const auto there = link_->check_map(); !there) {
    return std::unexpected(lose_node(there.error()));
  }
  auto counts = count_leaves();
  if (!counts) return std::unexpected(lose_node(counts.error()));
  if (const auto read = read_feed(); !read) return std::unexpected(lose_node(read.error()));
  if (const auto shape = read_shape(); !shape) return std::unexpected(lose_node(shape.error()));
  if (!follower_->compiles(*counts)) return follower_->changes();
  auto changes = while_kept([&] {
    if (!options_.trace.empty()) *counts = follower_->count(options_.trace);
    return follower_->changes(*std::move(counts));
  });
  if (const auto kept = link_->keep(); !kept) return std::unexpected(lose_node(kept.error()));
  return changes;
}

// Renews the lease, and sends keepalives to all switches, or to all but the one that is waited for.
// Ignores errors: the next use of the lease or the switch meets them.
void IndexController::keep(const Switch* besides) {
  if (link_) static_cast<void>(link_->keep());
  if (std::exchange(keeps_, true)) return;
  const std::uint64_t now = base::monotonic_ns();
  for (Switch& each : switches_) {
    if (&each == besides || !each.client || !each.filled || now - each.asked_ns < kAskNs) continue;
    static_cast<void>(send(each, "held", {}, kBesideNs));
  }
  keeps_ = false;
}

Result<void> IndexController::open_link() {
  auto opened = IndexLink::open(options_.node, options_.map, options_.connecting);
  if (!opened) return std::unexpected(opened.error());
  link_ = std::move(*opened);
  link_->call_while_reading([this] { keep(); });
  dataplane::MapKeys keys = link_->keys();
  keys.node = options_.number;
  follower_.emplace(keys, link_->prefix(), link_->base(), options_.limits);
  installed_ = before_ = false;
  feed_.reset();
  if (auto feed = link_->follow(); feed) feed_ = std::move(*feed);
  stale_ = true;
  read_ns_ = 0;
  programs_.clear();
  return {};
}

// Marks all tables for installation. The first ones of a link write the key that it opened with.
Result<void> IndexController::begin_generation() {
  for (Switch& each : switches_) each.current = false;
  if (!std::exchange(installed_, true)) return {};
  if (const auto begun = link_->begin_generation(); !begun) return begun;
  follower_->begin_generation(link_->keys().redirect, link_->base());
  programs_.clear();
  before_ = true;
  before_ends_ns_ = 0;
  return {};
}

// Where the root has moved the same tables are sent again, with it: that is rarer than a new
// generation, and a switch that has the root that was before leads READs to its successor.
void IndexController::send_root() {
  if (std::exchange(root_, follower_->root()) == follower_->root()) return;
  for (Switch& each : switches_) each.current = false;
  programs_.clear();
}

// A switch that could not be reached may go on with its tables for a while, and the node lets two
// generations be good.
Result<void> IndexController::end_generation_before() {
  const auto may_have_it = [](const Switch& each) { return each.filled && !each.current; };
  if (!link_ || !before_ || std::ranges::any_of(switches_, may_have_it)) return {};
  const std::uint64_t now = base::monotonic_ns();
  if (before_ends_ns_ == 0) before_ends_ns_ = now + kLateReadsNs;
  if (now < before_ends_ns_) return {};
  before_ = false;
  return link_->end_generations_before();
}

Result<void> IndexController::read_feed() {
  if (!feed_) return {};
  const auto news = link_->read_feed(*feed_);
  if (!news) return std::unexpected(news.error());
  counts_.behind += news->behind ? 1 : 0;
  stale_ = stale_ || news->behind;
  counts_.moves += news->changes.size();
  for (const place::MappingChange& change : news->changes) {
    if (!follower_->moved(change)) stale_ = true;
  }
  if (news->ended) feed_.reset();
  return {};
}

// Reads the tree if its shape has changed; without a feed in each round.
Result<void> IndexController::read_shape() {
  if (feed_ && !stale_) return {};
  const std::uint64_t now = base::monotonic_ns();
  const bool read_before = read_ns_ != 0;
  if (read_before && now - read_ns_ < options_.read_every_ns) return {};
  read_ns_ = now;
  if (const auto read = follower_->read(link_->view(), *link_); !read) return read;
  ++counts_.trees;
  stale_ = false;
  return {};
}

// Empty while the counts are not due, or if there is a trace.
Result<place::LeafCounts> IndexController::count_leaves() {
  if (!options_.trace.empty()) return place::LeafCounts();
  const std::uint64_t now = base::monotonic_ns();
  if (now - counted_ns_ < options_.count_every_ns) return place::LeafCounts();
  counted_ns_ = now;
  return link_->read_counts();
}

// The link's keys are void, or will be soon; tables that name them are worse than none. The next
// link has other keys.
IndexController::Fault IndexController::lose_node(const Error& error) {
  clear();
  follower_.reset();
  link_.reset();
  return {Fault::Side::node, error, {}, {}};
}

// --- switches ------------------------------------------------------------------------------------

std::expected<IndexController::Did, IndexController::Fault> IndexController::update(
    Switch& to, std::string_view changes) {
  if (base::monotonic_ns() < to.rests_until_ns) return std::unexpected(*to.fault);
  // A restarted switch has no tables, and its connection is closed.
  if (auto reached = reach(to); !reached) return std::unexpected(std::move(reached.error()));
  if (to.current && changes.empty()) return Did::nothing;
  if (std::exchange(to.current, false)) {
    auto changed = send(to, "change", changes, kShortNs);
    to.current = changed.has_value();
    if (changed) return Did::changed;
    // A switch that refuses forgets the map.
    if (changed.error().words.empty()) return std::unexpected(std::move(changed.error()));
  }
  const std::string& text = program(to.part);
  if (const auto kept = link_->keep(); !kept) {
    return std::unexpected(Fault{Fault::Side::node, kept.error(), {}, {}});
  }
  if (!to.client) {  // the connection was lost meanwhile
    return std::unexpected(
        Fault{Fault::Side::control, {Code::connection_lost, 0, 0}, {}, to.control});
  }
  to.filled = true;
  if (auto done = send(to, "put", text, dataplane::kControlLongestNs); !done) {
    if (!done.error().words.empty()) {
      to.fault = done.error();
      to.rests_until_ns = base::monotonic_ns() + kRefusedRestsNs;
    }
    return std::unexpected(std::move(done.error()));
  }
  to.has_none = text == dataplane::SwitchProgram().text();
  to.current = true;
  return Did::installed;
}

std::vector<std::string> IndexController::text_of(
    std::span<const dataplane::EntryChange> changes) const {
  if (options_.hops.empty()) return {dataplane::to_text(changes)};
  std::vector<std::string> texts;
  for (const auto& part : dataplane::cut_changes(changes, way())) {
    texts.push_back(dataplane::to_text(part));
  }
  return texts;
}

// These tables have a new redirect key, and new cursors.
const std::string& IndexController::program(std::size_t part) {
  if (!programs_.empty()) return programs_[part];
  programs_ = while_kept([this] {
    const dataplane::MapKeys keys = follower_->keys();
    const dataplane::HintTerms hints{link_->view().id, link_->base(), link_->prefix(),
                                     options_.has_card ? follower_->root() : 0};
    std::vector<dataplane::SwitchProgram> programs(1);
    if (options_.hops.empty()) {
      static_cast<void>(programs[0].add({keys, follower_->tables(), {}, hints}));
    } else {
      programs = dataplane::cut_program(keys, follower_->tables(), way(), keys.redirect, hints);
    }
    std::vector<std::string> texts;
    for (const auto& program : programs) texts.push_back(program.text());
    return texts;
  });
  return programs_[part];
}

// Asks the switch what it holds. If that is nothing, it has forgotten the map: it heard nothing for
// too long, or another controller has installed something else.
std::expected<void, IndexController::Fault> IndexController::reach(Switch& to) {
  const auto ask = [&]() -> std::expected<void, Fault> {
    const auto held = send(to, "held", {}, kShortNs);
    if (!held) return std::unexpected(held.error());
    if (*held == "0" && !to.has_none) to.current = to.filled = false;
    return {};
  };
  if (to.client) {
    const auto there = ask();
    if (there || base::monotonic_ns() < to.rests_until_ns) return there;
  }
  auto connected = ControlClient::connect(to.control);
  if (!connected) {
    return std::unexpected(Fault{Fault::Side::control, connected.error(), {}, to.control});
  }
  to.client.emplace(std::move(*connected));
  to.current = to.filled = false;
  return ask();
}

std::expected<std::string, IndexController::Fault> IndexController::send(Switch& to,
                                                                         std::string_view word,
                                                                         std::string_view body,
                                                                         std::uint64_t longest_ns) {
  const std::uint64_t begun_ns = base::monotonic_ns();
  auto answer = to.client->ask(
      word, body, [this, &to] { keep(&to); }, longest_ns);
  to.asked_ns = base::monotonic_ns();
  if (answer) return *std::move(answer);
  Fault fault{Fault::Side::control, answer.error(), to.client->refused(), to.control};
  if (!fault.words.empty()) return std::unexpected(std::move(fault));
  to.client.reset();
  to.current = to.filled = false;
  if (to.asked_ns - begun_ns >= longest_ns) {
    to.fault = fault;
    to.rests_until_ns = to.asked_ns + kSlowRestsNs;
  }
  return std::unexpected(std::move(fault));
}

}  // namespace espalier::client
