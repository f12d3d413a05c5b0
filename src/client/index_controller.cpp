// SPDX-License-Identifier: Apache-2.0
#include "client/index_controller.hpp"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "dataplane/switch_program.hpp"

namespace espalier::client {

using dataplane::ControlClient;
using place::IndexFollower;

std::expected<IndexController::Did, IndexController::Fault> IndexController::round() {
  const auto changes = read_tree();
  if (!changes) return std::unexpected(changes.error());
  // A switch that has begun anew has no tables, and says so by having ended the connection.
  if (auto reached = reach_switch(); !reached) return std::unexpected(std::move(reached.error()));
  if (current_ && *changes && (*changes)->empty()) return Did::nothing;
  if (current_ && *changes) {
    current_ = false;
    auto done = send("change", dataplane::to_text(**changes));
    if (!done) return std::unexpected(std::move(done.error()));
    current_ = true;
    changes_ += (*changes)->size();
    return Did::changed;
  }
  current_ = false;
  dataplane::SwitchProgram program;
  static_cast<void>(program.add({follower_->keys(), follower_->tables()}));
  if (auto done = send("install", program.text()); !done) {
    return std::unexpected(std::move(done.error()));
  }
  current_ = true;
  return Did::installed;
}

void IndexController::clear() {
  if (!control_) return;
  static_cast<void>(send("install", dataplane::SwitchProgram().text()));
  current_ = false;
}

std::expected<IndexFollower::Changes, IndexController::Fault> IndexController::read_tree() {
  if (!link_) {
    if (const auto opened = open_link(); !opened) {
      return std::unexpected(Fault{Fault::Side::node, opened.error(), {}});
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
  return follower_->changes(*std::move(counts));
}

Result<void> IndexController::open_link() {
  auto opened = IndexLink::open(options_.node, options_.map, options_.secret);
  if (!opened) return std::unexpected(opened.error());
  link_ = std::move(*opened);
  follower_.emplace(link_->keys(), link_->prefix(), link_->base(), options_.limits);
  feed_.reset();
  if (auto feed = link_->follow(); feed) feed_ = std::move(*feed);
  stale_ = true;
  read_ns_ = 0;
  current_ = false;
  return {};
}

// All of it that is there: what it tells stands before a tree that is read afterwards.
Result<void> IndexController::read_feed() {
  if (!feed_) return {};
  const auto landing = std::make_unique<place::FeedCursor::Landing>();
  std::vector<place::MappingChange> changes;
  bool more = true;
  while (more) {
    const bool knew = feed_->entries_bytes() != 0;
    const place::RegionSource::Want wanted[] = {
        {feed_->header_offset(), landing->header},
        {feed_->entries_offset(), std::span(landing->entries).first(feed_->entries_bytes())}};
    if (const auto read = link_->read(wanted); !read) return read;
    changes.clear();
    switch (feed_->take(*landing, changes)) {
      case place::FeedCursor::Came::entries: break;
      case place::FeedCursor::Came::behind:
        ++counts_.behind;
        stale_ = true;
        break;
      case place::FeedCursor::Came::ended: feed_.reset(); return {};
    }
    counts_.moves += changes.size();
    for (const place::MappingChange& change : changes) {
      if (!follower_->moved(change)) stale_ = true;
    }
    // What the writer has begun and not published yet comes with the next round.
    more = feed_->waiting() != 0 && (!knew || !changes.empty());
  }
  return {};
}

// Without a feed each time.
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

// Nothing while they are not due.
Result<place::LeafCounts> IndexController::count_leaves() {
  const std::uint64_t now = base::monotonic_ns();
  if (now - counted_ns_ < options_.count_every_ns) return place::LeafCounts();
  counted_ns_ = now;
  return link_->read_counts();
}

// Its keys are void from now on, or will be soon: the next link has others.
IndexController::Fault IndexController::lose_node(const Error& error) {
  follower_.reset();
  link_.reset();
  current_ = false;
  return {Fault::Side::node, error, {}};
}

std::expected<void, IndexController::Fault> IndexController::reach_switch() {
  if (control_ && send("status", {})) return {};
  auto connected = ControlClient::connect(options_.control);
  if (!connected) return std::unexpected(Fault{Fault::Side::control, connected.error(), {}});
  control_.emplace(std::move(*connected));
  current_ = false;
  return {};
}

std::expected<std::string, IndexController::Fault> IndexController::send(std::string_view word,
                                                                         std::string_view body) {
  auto answer = control_->ask(word, body);
  if (answer) return *std::move(answer);
  Fault fault{Fault::Side::control, answer.error(), control_->refused()};
  if (fault.words.empty()) control_.reset();
  return std::unexpected(std::move(fault));
}

}  // namespace espalier::client
