// SPDX-License-Identifier: Apache-2.0
#include "shards/sharded_pipeline.hpp"

#include <utility>

#include "shards/pause.hpp"
#include "shards/sharded_reads.hpp"

namespace espalier::client {
namespace {

constexpr std::size_t kNoShard = ~std::size_t{0};

}  // namespace

class ShardedPipeline::Group final : public Handler {
 public:
  Group(ShardedPipeline& of, std::size_t shard, Handler& to) : of_(of), shard_(shard), to_(to) {}

  void add(const Request& request) {
    originals_.push_back(&request);
    copies_.push_back(request);
    copies_.back().tag = originals_.size() - 1;
  }
  [[nodiscard]] std::span<const Request> requests() const { return copies_; }
  [[nodiscard]] bool ended() const { return ended_ == originals_.size(); }
  /// None of them can be sent.
  void refuse(const Error& error) {
    for (const Request& request : copies_) {
      Completion refused;
      refused.tag = request.tag;
      refused.op = request.op;
      refused.error = error;
      done(refused);
    }
  }

  void done(const Completion& completion) override {
    const Request& request = *originals_[completion.tag];
    ++ended_;
    --of_.in_groups_;
    const bool goes_left =
        completion.ok && completion.op == Op::floor && !completion.found && shard_ != 0;
    const bool outdated = !completion.ok && is_outdated(completion.error) && completion.items == 0;
    if (goes_left || (outdated && !delivered_)) {
      of_.later_.push_back({&request, &to_});
      return;
    }
    ++of_.completed_;
    Completion answer = completion;
    answer.tag = request.tag;
    if (!answer.ok) answer.error = error_of_shard(answer.error, shard_);
    to_.done(answer);
  }
  bool items(std::uint64_t tag, std::span<const Item> items) override {
    delivered_ = true;
    return to_.items(originals_[tag]->tag, items);
  }

 private:
  ShardedPipeline& of_;
  const std::size_t shard_;
  Handler& to_;
  std::vector<const Request*> originals_;
  std::vector<Request> copies_;
  std::size_t ended_ = 0;
  bool delivered_ = false;  // items of one of its scans: none of them is asked for twice
};

ShardedPipeline::ShardedPipeline(ShardedMap& map, std::uint32_t in_flight)
    : map_(map), in_flight_(in_flight), nodes_(map.nodes()), pipes_(nodes_->map().size()) {}

// What is in flight is waited for, as by every pipeline that goes.
ShardedPipeline::~ShardedPipeline() {
  while (pending() != 0) poll();
}

// By the shard map that calls go by, once nothing is in flight by an older one.
void ShardedPipeline::follow() {
  if (in_groups_ != 0) return;
  auto now = map_.nodes();
  if (now == nodes_) return;
  pipes_.clear();
  nodes_ = std::move(now);
  pipes_.resize(nodes_->map().size());
}

// The shard that may answer it alone.
std::size_t ShardedPipeline::place_of(const Request& request) const {
  const wire::ShardMap& map = nodes_->map();
  if (!is_scan(request.op)) return map.shard_of(request.key);
  const std::uint32_t most = map_.max_key_bytes();
  if (request.key.size() > most || request.high.size() > most) return 0;  // which refuses it
  const ShardSpan span = span_of(map, request);
  const bool floor_elsewhere = request.op == Op::scan_floor && span.first != 0;
  return span.first == span.last && !floor_elsewhere ? span.first : kNoShard;
}

Result<PipelineImpl*> ShardedPipeline::pipe(std::size_t shard) {
  if (pipes_[shard] == nullptr) {
    const auto map = nodes_->shard(shard);
    if (!map) return std::unexpected(map.error());
    auto opened = (*map)->open_pipeline(in_flight_);
    if (!opened) return std::unexpected(error_of_shard(opened.error(), shard));
    pipes_[shard] = std::move(*opened);
  }
  return pipes_[shard].get();
}

void ShardedPipeline::submit(std::span<const Request> requests, Handler& handler) {
  forget_ended();
  follow();
  std::vector<std::unique_ptr<Group>> by_shard(nodes_->map().size());
  for (const Request& request : requests) {
    const std::size_t shard = place_of(request);
    if (shard == kNoShard) {
      later_.push_back({&request, &handler});
      continue;
    }
    if (by_shard[shard] == nullptr)
      by_shard[shard] = std::make_unique<Group>(*this, shard, handler);
    by_shard[shard]->add(request);
  }
  for (std::size_t shard = 0; shard < by_shard.size(); ++shard) {
    if (by_shard[shard] != nullptr) send(shard, std::move(by_shard[shard]));
  }
}

void ShardedPipeline::send(std::size_t shard, std::unique_ptr<Group> group) {
  Group& kept = *groups_.emplace_back(std::move(group));
  in_groups_ += kept.requests().size();
  const auto to = pipe(shard);
  if (!to) return kept.refuse(to.error());
  (*to)->submit(kept.requests(), kept);
}

void ShardedPipeline::forget_ended() {
  std::erase_if(groups_, [](const auto& group) { return group->ended(); });
}

// One call; the others of its kind wait until what is in flight has been looked at again.
bool ShardedPipeline::do_later() {
  if (later_.empty()) return false;
  const Later next = later_.front();
  later_.pop_front();
  const auto ran = map_.run(*next.request, *next.handler);
  if (!ran) {
    Completion failed;
    failed.tag = next.request->tag;
    failed.op = next.request->op;
    failed.error = ran.error();
    next.handler->done(failed);
  }
  ++completed_;
  return true;
}

bool ShardedPipeline::look() {
  const std::uint64_t before = completed_;
  for (const auto& pipe : pipes_) {
    if (pipe != nullptr) pipe->advance();
  }
  do_later();
  return completed_ != before;
}

std::size_t ShardedPipeline::pending() const { return in_groups_ + later_.size(); }

std::size_t ShardedPipeline::advance() {
  look();
  return pending();
}

std::size_t ShardedPipeline::poll() {
  std::uint32_t in_vain = 0;
  while (!look() && pending() != 0) pause_after(++in_vain);
  return pending();
}

void ShardedPipeline::run(std::span<const Request> requests, Handler& handler) {
  submit(requests, handler);
  while (pending() != 0) poll();
}

}  // namespace espalier::client
