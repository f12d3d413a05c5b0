// SPDX-License-Identifier: Apache-2.0
#include "channel/peer/session_link.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

#include "base/assert.hpp"
#include "base/clock.hpp"

namespace espalier::peer {
namespace {

using channel::PeerAnswer;
using channel::PeerEnds;
using fabric::Completion;
using fabric::PostEnd;
using fabric::QueuePair;
using fabric::Status;

constexpr std::uint32_t kSignalEvery = SessionLink::kPostsMax / 4;
constexpr int kAnswersPerPoll = 64;
constexpr std::uint64_t kQuietLookNs = 1'000'000;  // while nothing is awaited

}  // namespace

SessionLink::SessionLink(const PeerOptions& options, std::function<void()> wake)
    : options_(options),
      wake_(std::move(wake)),
      posts_(kPostsMax, kSignalEvery),
      pause_ns_(options.pause_ns) {
  never_left_.reserve(kPostsMax);
  free_calls_.reserve(kCallsMax);
  for (std::uint32_t tag = kCallsMax; tag != 0; --tag) free_calls_.push_back(tag - 1);
}

// What is opened aside just now ends with its times. What is in flight lies in memory of its
// posters, so the pair ends first.
SessionLink::~SessionLink() {
  if (memory_) memory_->pair().close();
}

// --- posts and calls -----------------------------------------------------------------------------

bool SessionLink::never_leaves(std::uint64_t owner, Status why) {
  if (never_left_.size() == kPostsMax) return false;
  never_left_.push_back({owner, PostEnd::not_sent, why});
  return true;
}

// What no packet could carry may come of a client's request: that is no mistake of the program's.
bool SessionLink::post(std::uint64_t session, const fabric::WorkRequest& request,
                       std::uint64_t owner) {
  const bool meant = session == kAnySession || session == sessions_;
  if (!memory_ || !meant) return never_leaves(owner, Status::flushed);
  if (request.bytes > memory_->endpoint().properties().message_bytes_max) {
    return never_leaves(owner, Status::local_length);
  }
  return posts_.add(request, owner);
}

bool SessionLink::call(std::uint64_t session, const wire::CallMessage& message, PeerAnswer& answer,
                       std::uint64_t owner) {
  const bool meant = session == kAnySession || session == sessions_;
  if (!rings_ || !meant) return never_leaves(owner, Status::flushed);
  if (sending_ || free_calls_.empty()) return false;
  const std::uint32_t tag = free_calls_.back();
  if (!rings_->begin_send(message, tag)) return false;
  free_calls_.pop_back();
  sending_ = !rings_->send_rest();
  calls_[tag] = {owner, &answer, false};
  own_counts().calls.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void SessionLink::ring() {
  if (memory_ && posts_.waits()) {
    posts_.ring();
    memory_->endpoint().flush();
    count();
  }
  if (rings_) {
    if (sending_) sending_ = !rings_->send_rest();
    rings_->ring();
  }
}

bool SessionLink::waits() const {
  return !never_left_.empty() || posts_.pending() != 0 || free_calls_.size() != kCallsMax ||
         sending_ || (opening_ && opening_->is_done.load(std::memory_order_acquire));
}

// --- ends ----------------------------------------------------------------------------------------

bool SessionLink::poll(PeerEnds& ends) {
  now_ns_ = base::monotonic_ns();
  bool moved = !never_left_.empty();
  for (const Ended& ended : never_left_) report(ends, ended);
  never_left_.clear();
  if (opening_) moved = take_opened() || moved;
  if (!rings_) {
    if (!opening_ && now_ns_ >= again_ns_) begin_opening();
    return moved;
  }
  const bool awaits = posts_.pending() != 0 || free_calls_.size() != kCallsMax || sending_;
  if (!awaits) {
    heard_ns_ = now_ns_;
    if (now_ns_ - polled_ns_ < kQuietLookNs) return moved;
    polled_ns_ = now_ns_;
  }
  bool heard = poll_memory(ends);
  heard = poll_calls(ends) || heard;
  if (heard) heard_ns_ = now_ns_;
  silent_ = awaits && now_ns_ - heard_ns_ >= options_.silence_ns;
  if (is_lost()) lose(ends);
  return moved || heard;
}

bool SessionLink::poll_memory(PeerEnds& ends) {
  if (!memory_) return false;
  Completion batch[64];
  const std::size_t came = memory_->completions().poll(batch);
  for (std::size_t i = 0; i < came; ++i) {
    posts_.completed(batch[i]);
    report_posts(ends);
  }
  if (came != 0) count();
  return came != 0;
}

bool SessionLink::poll_calls(PeerEnds& ends) {
  bool heard = false;
  client::Incoming response;
  for (int i = 0; i < kAnswersPerPoll && rings_->receive(response); ++i) {
    heard = true;
    take_answer(response, ends);
  }
  if (heard && free_calls_.size() == kCallsMax) rings_->enter_idle();
  return heard;
}

// Of a tag that no call has nothing is believed, nor of a peer that is no node.
void SessionLink::take_answer(const client::Incoming& response, PeerEnds& ends) {
  const std::uint32_t tag = response.header.tag;
  if (tag >= kCallsMax || calls_[tag].answer == nullptr) return;
  WaitingCall& call = calls_[tag];
  if (response.header.kind == static_cast<std::uint8_t>(wire::ResponseKind::chunk)) {
    call.in_pieces = true;
    return;
  }
  PeerAnswer& answer = *call.answer;
  answer.header = response.header;
  answer.payload_bytes = response.payload.size();
  if (call.in_pieces) {
    answer.header = {};
    answer.header.code = static_cast<std::uint16_t>(Code::unsupported);
    answer.payload_bytes = 0;
  }
  const std::size_t kept = std::min(answer.payload_bytes, answer.into.size());
  if (kept != 0) std::memcpy(answer.into.data(), response.payload.data(), kept);
  const Ended ended{call.owner, PostEnd::done, Status::success};
  call = {};
  free_calls_.push_back(tag);
  report(ends, ended);
}

void SessionLink::report(PeerEnds& ends, const Ended& ended) {
  if (ended.how != PostEnd::done) own_counts().failures.fetch_add(1, std::memory_order_relaxed);
  ends.ended(ended.owner, ended.how, ended.status);
}

void SessionLink::report_posts(PeerEnds& ends) {
  for (const fabric::PostQueue::Ended& ended : posts_.ends()) {
    report(ends, {ended.owner, ended.how, ended.status});
  }
}

void SessionLink::count() {
  const fabric::PostQueue::Counts& posts = posts_.counts();
  own_counts().posts.store(posts.posts, std::memory_order_relaxed);
  own_counts().doorbells.store(posts.doorbells, std::memory_order_relaxed);
  own_counts().completions.store(posts.completions, std::memory_order_relaxed);
}

// --- up and down ---------------------------------------------------------------------------------

// A process that was stopped, or a machine that is gone, ends no connection by itself.
bool SessionLink::is_lost() const {
  return silent_ || rings_->lost() ||
         (memory_ && memory_->pair().state() == QueuePair::State::error);
}

void SessionLink::begin_opening() {
  again_ns_ = now_ns_ + pause_ns_;
  auto opening = std::make_unique<Opening>();
  auto open = [this, &into = *opening, ended = std::move(ended_)]() mutable {
    ended.reset();  // which hangs it up
    try {
      into.opened = open_peer(options_);
    } catch (const std::exception&) {  // there is no memory
      into.opened = fail(Code::out_of_memory);
    }
    into.is_done.store(true, std::memory_order_release);
    wake_();
  };
  try {
    opening->thread = std::async(std::launch::async, std::move(open));
  } catch (const std::system_error&) {  // no thread is to be had now
    return;
  }
  opening_ = std::move(opening);
}

bool SessionLink::take_opened() {
  if (!opening_->is_done.load(std::memory_order_acquire)) return false;
  Result<OpenedPeer> opened = std::move(*opening_->opened);
  opening_.reset();
  // One that is away for long is not looked for all the time.
  pause_ns_ = opened ? options_.pause_ns : std::min(2 * pause_ns_, options_.pause_max_ns);
  again_ns_ = now_ns_ + pause_ns_;
  if (opened) take_up(std::move(*opened));
  return true;
}

void SessionLink::take_up(OpenedPeer opened) {
  connection_ = std::move(opened.connection);
  rings_ = std::move(opened.rings);
  memory_ = std::move(opened.memory);
  if (memory_) posts_.attach(memory_->pair());
  sending_ = false;
  silent_ = false;
  heard_ns_ = polled_ns_ = now_ns_;
  ++sessions_;
  own_counts().up.store(true, std::memory_order_relaxed);
  own_counts().opened.fetch_add(1, std::memory_order_relaxed);
}

// A call whose message had begun to go is one that left.
void SessionLink::lose(PeerEnds& ends) {
  own_counts().up.store(false, std::memory_order_relaxed);
  if (memory_) {
    memory_->pair().close();
    while (poll_memory(ends)) {  // what it told before it ended
    }
    posts_.detach();
    report_posts(ends);
    memory_.reset();
  }
  rings_.reset();
  ended_ = std::move(connection_);
  again_ns_ = now_ns_ + options_.pause_ns;
  for (std::uint32_t tag = 0; tag < kCallsMax; ++tag) {
    if (calls_[tag].answer == nullptr) continue;
    const WaitingCall call = std::exchange(calls_[tag], {});
    free_calls_.push_back(tag);
    report(ends, {call.owner, PostEnd::unknown, Status::flushed});
  }
  sending_ = false;
}

}  // namespace espalier::peer
