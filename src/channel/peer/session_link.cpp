// SPDX-License-Identifier: Apache-2.0
#include "channel/peer/session_link.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <utility>

#include "base/assert.hpp"

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
constexpr std::uint64_t kQuietLookNs = 1'000'000;  // poll interval while nothing is awaited
constexpr std::uint64_t kTimesLookNs = 1'000'000;  // between checks of calls' timeouts
constexpr std::uint32_t kAsksTag = SessionLink::kCallsMax;
// With the most hops: it takes no place of a call, and waits behind none.
constexpr wire::CallMessage kAsks{.offload = wire::OffloadId::noop, .hops = wire::kHopsMax};
constexpr std::uint32_t kCancelTags = kAsksTag + 1;  // plus the tag of the call

}  // namespace

SessionLink::SessionLink(const PeerOptions& options, std::function<void()> wake)
    : options_(options),
      wake_(std::move(wake)),
      posts_(kPostsMax, kSignalEvery),
      pause_ns_(options.pause_ns) {
  calls_never_left_.reserve(kCallsMax);
  posts_never_left_.reserve(kPostsMax);
  free_calls_.reserve(kCallsMax);
  for (std::uint32_t tag = kCallsMax; tag != 0; --tag) free_calls_.push_back(tag - 1);
}

// Waits for an opening on another thread, within its timeouts. Closes the pair first: posts in
// flight use memory of their posters.
SessionLink::~SessionLink() {
  if (memory_) memory_->pair().close();
}

// --- posts and calls -----------------------------------------------------------------------------

bool SessionLink::post_never_leaves(std::uint64_t owner, Status why) {
  if (posts_never_left_.size() == kPostsMax) return false;
  posts_never_left_.push_back({taken_, {owner, PostEnd::not_sent, why}});
  return true;
}

bool SessionLink::call_never_leaves(std::uint64_t owner, Status why) {
  if (calls_never_left_.size() == kCallsMax) return false;
  calls_never_left_.push_back({owner, PostEnd::not_sent, why});
  return true;
}

// A client's request may ask for more than a message can carry: that is an error, not an assertion.
bool SessionLink::post(std::uint64_t session, const fabric::WorkRequest& request,
                       std::uint64_t owner) {
  const bool meant = session == kAnySession || session == sessions_;
  batch_stays_ = !memory_;
  if (!memory_ || !meant) return post_never_leaves(owner, Status::flushed);
  if (request.bytes > memory_->endpoint().properties().message_bytes_max) {
    return post_never_leaves(owner, Status::local_length);
  }
  if (!posts_.add(request, owner)) return false;
  ++taken_;
  return true;
}

// The pair may come up between two posts of a batch.
bool SessionLink::post_behind(std::uint64_t session, const fabric::WorkRequest& request,
                              std::uint64_t owner) {
  return batch_stays_ ? post_never_leaves(owner, Status::flushed) : post(session, request, owner);
}

bool SessionLink::has_room(std::uint8_t hops) const {
  return !sending_ && !free_calls_.empty() && (hops == 0 || calls_of_hops_[hops] < kCallsOfHopsMax);
}

// If there is no memory for a long message, nothing of it was sent.
bool SessionLink::call(std::uint64_t session, const wire::CallMessage& message, PeerAnswer& answer,
                       std::uint64_t owner) {
  ESPALIER_ASSERT(message.hops <= wire::kHopsMax);
  const bool meant = session == kAnySession || session == sessions_;
  if (!rings_ || !meant) return call_never_leaves(owner, Status::flushed);
  if (!has_room(message.hops)) return false;
  const std::uint32_t tag = free_calls_.back();
  try {
    if (!rings_->begin_send(message, tag)) return false;
  } catch (const std::bad_alloc&) {
    return call_never_leaves(owner, Status::flushed);
  }
  free_calls_.pop_back();
  ++calls_of_hops_[message.hops];
  sending_ = !rings_->send_rest();
  calls_[tag] = {.state = WaitingCall::State::waits,
                 .hops = message.hops,
                 .owner = owner,
                 .answer = &answer,
                 .since_ns = now_ns_};
  own_counts().calls.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// If a doorbell runs out of memory, it is unknown what has left.
void SessionLink::ring() {
  try {
    if (memory_ && posts_.waits()) {
      posts_.ring();
      memory_->endpoint().flush();
      count();
    }
    if (rings_) {
      if (sending_) send_more();
      rings_->ring();
    }
  } catch (const std::bad_alloc&) {
    lost_ = true;
  }
}

// A peer that takes parts of a long message is alive.
void SessionLink::send_more() {
  const std::uint64_t before = rings_->tail();
  sending_ = !rings_->send_rest();
  if (rings_->tail() != before) hear();
}

// Cancels are sent before the thread sleeps; their answers may be handled later.
bool SessionLink::awaits() const {
  return posts_.pending() != 0 || awaits_answers() || sending_ || to_cancel_ != 0;
}

bool SessionLink::waits() const {
  return !calls_never_left_.empty() || !posts_never_left_.empty() || awaits() || lost_ ||
         (opening_ && opening_->is_done.load(std::memory_order_acquire)) ||
         (memory_opening_ && memory_opening_->is_done.load(std::memory_order_acquire));
}

std::uint64_t SessionLink::sleep_limit_ns() const {
  const bool to_open = !rings_ && !opening_;
  if (!to_open && !waits_for_memory()) return std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t due = to_open ? again_ns_ : memory_again_ns_;
  const std::uint64_t now = options_.now_ns();
  return due > now ? due - now : 0;
}

// --- completions ---------------------------------------------------------------------------------

bool SessionLink::poll(PeerEnds& ends) {
  now_ns_ = options_.now_ns();
  bool moved = report_never_left(ends);
  if (opening_) moved = take_opened() || moved;
  if (memory_opening_) moved = take_memory() || moved;
  if (!rings_) {
    if (!opening_ && now_ns_ >= again_ns_) begin_opening();
    return moved;
  }
  if (waits_for_memory() && now_ns_ >= memory_again_ns_) begin_opening_memory();
  if (!awaits()) {
    hear();
    ended_ns_ = now_ns_;
    if (now_ns_ - polled_ns_ < kQuietLookNs && !is_lost()) return moved;
    polled_ns_ = now_ns_;
  }
  try {
    moved = poll_session(ends) || moved;
  } catch (const std::bad_alloc&) {
    lost_ = true;
  }
  if (is_lost()) lose(ends);
  return moved;
}

bool SessionLink::poll_session(PeerEnds& ends) {
  if (lost_) return false;
  bool moved = poll_memory(ends);
  if (moved || posts_.pending() == 0) ended_ns_ = now_ns_;
  if (poll_calls(ends)) {
    moved = true;
    hear();
  }
  if (awaits()) look_for_silence(ends);
  if (!lost_) cancel_given_up();
  return moved;
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
  if (heard && !awaits_answers()) rings_->enter_idle();
  return heard;
}

// Ignores answers with the tag of no call: the peer may be hostile.
void SessionLink::take_answer(const client::Incoming& response, PeerEnds& ends) {
  const std::uint32_t tag = response.header.tag;
  if (tag == kAsksTag) asked_ = false;
  if (tag >= kCancelTags && tag - kCancelTags < kCallsMax) return end_cancel(tag - kCancelTags);
  if (tag >= kCallsMax || calls_[tag].state == WaitingCall::State::free) return;
  WaitingCall& call = calls_[tag];
  if (response.header.kind == static_cast<std::uint8_t>(wire::ResponseKind::chunk)) {
    call.in_pieces = true;
    return;
  }
  if (call.state == WaitingCall::State::given_up) {
    call.answered = call.cancelling;
    return call.answered ? void() : free_call(tag);
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
  free_call(tag);
  report(ends, ended);
}

void SessionLink::free_call(std::uint32_t tag) {
  const WaitingCall call = std::exchange(calls_[tag], WaitingCall{});
  if (call.state == WaitingCall::State::given_up) --given_up_;
  if (call.to_cancel) --to_cancel_;
  if (call.cancelling) --calls_of_hops_[wire::kHopsMax];
  --calls_of_hops_[call.hops];
  free_calls_.push_back(tag);
}

void SessionLink::report(PeerEnds& ends, const Ended& ended) {
  if (ended.how != PostEnd::done) own_counts().failures.fetch_add(1, std::memory_order_relaxed);
  ends.ended(ended.owner, ended.how, ended.status);
}

// Keeps the order of acceptance between posts that leave and posts that never leave.
void SessionLink::report_posts(PeerEnds& ends) {
  for (const fabric::PostQueue::Ended& ended : posts_.ends()) {
    report_never_left(ends);
    report(ends, {ended.owner, ended.how, ended.status});
    ++completed_;
  }
  report_never_left(ends);
}

bool SessionLink::report_never_left(PeerEnds& ends) {
  bool any = !calls_never_left_.empty();
  for (const Ended& ended : calls_never_left_) report(ends, ended);
  calls_never_left_.clear();
  const auto is_due = [this](const NeverLeft& each) { return each.behind <= completed_; };
  const auto later = std::ranges::find_if_not(posts_never_left_, is_due);
  for (auto at = posts_never_left_.begin(); at != later; ++at) {
    report(ends, at->ended);
    any = true;
  }
  posts_never_left_.erase(posts_never_left_.begin(), later);
  return any;
}

// --- keepalive -----------------------------------------------------------------------------------

void SessionLink::hear() {
  heard_ns_ = now_ns_;
  doubts_ns_ = 0;
}

// A stopped process or a machine that is down closes no connection. If this thread itself did not
// poll for long, it probes all the same before it gives the peer up.
void SessionLink::look_for_silence(PeerEnds& ends) {
  const std::uint64_t first_ns = options_.silence_ns / 4;
  if (doubts_ns_ == 0 && now_ns_ - heard_ns_ >= first_ns) doubts_ns_ = now_ns_;
  const bool silent = doubts_ns_ != 0 && now_ns_ - doubts_ns_ >= options_.silence_ns - first_ns;
  lost_ = silent || now_ns_ - ended_ns_ >= options_.answer_ns || given_up_ > kGivenUpMax;
  if (lost_) return;
  if (doubts_ns_ != 0 && !asked_ && !sending_ && rings_->begin_send(kAsks, kAsksTag)) {
    asked_ = true;
    rings_->ring();
  }
  if (now_ns_ - looked_ns_ >= kTimesLookNs) give_up_old_calls(ends);
}

// A tag is free when its answer has arrived, or the session is over.
void SessionLink::give_up_old_calls(PeerEnds& ends) {
  looked_ns_ = now_ns_;
  if (!awaits_answers()) return;
  for (WaitingCall& call : calls_) {
    if (call.state != WaitingCall::State::waits || now_ns_ < call.since_ns + options_.answer_ns) {
      continue;
    }
    call.state = WaitingCall::State::given_up;
    call.answer = nullptr;
    call.to_cancel = true;
    ++given_up_;
    ++to_cancel_;
    report(ends, {call.owner, PostEnd::unknown, Status::retry_exceeded});
  }
}

// Has the peer stop calls whose answers are not awaited, if they can be cancelled. Sends only while
// there is room: it merely saves the peer work.
void SessionLink::cancel_given_up() {
  if (to_cancel_ == 0) return;
  for (std::uint32_t tag = 0; tag < kCallsMax && has_room(wire::kHopsMax); ++tag) {
    WaitingCall& call = calls_[tag];
    if (!call.to_cancel) continue;
    const wire::CallMessage message{
        .offload = wire::OffloadId::cancel, .hops = wire::kHopsMax, .argument = tag};
    if (!rings_->begin_send(message, kCancelTags + tag)) break;
    call.to_cancel = false;
    --to_cancel_;
    call.cancelling = true;
    ++calls_of_hops_[wire::kHopsMax];
  }
  rings_->ring();
}

// Until its cancel is answered no other call gets the tag: the peer may process the cancel after
// later calls.
void SessionLink::end_cancel(std::uint32_t tag) {
  WaitingCall& call = calls_[tag];
  if (!std::exchange(call.cancelling, false)) return;
  --calls_of_hops_[wire::kHopsMax];
  if (call.answered) free_call(tag);
}

void SessionLink::count() {
  const fabric::PostQueue::Counts& posts = posts_.counts();
  own_counts().posts.store(posts.posts, std::memory_order_relaxed);
  own_counts().doorbells.store(posts.doorbells, std::memory_order_relaxed);
  own_counts().completions.store(posts.completions, std::memory_order_relaxed);
}

// --- up and down ---------------------------------------------------------------------------------

bool SessionLink::is_lost() const {
  return lost_ || rings_->lost() || (memory_ && memory_->pair().state() == QueuePair::State::error);
}

// Runs on another thread. A node with another number does not know the previous session.
void SessionLink::open(const PeerOptions& options, const std::function<void()>& wake,
                       Opening& into) {
  try {
    const bool known = into.before && !into.before->end_session(options.timeout_ns);
    if (!known) into.before.reset();
    into.opened = open_peer(options, wake);
    if (known && *into.opened) {
      const bool same = (*into.opened)->connection->node_id() == into.before->node_id();
      if (same) into.opened = fail(Code::connection_lost);
      if (!same) into.before.reset();
    }
  } catch (const std::exception&) {  // no memory
    into.opened = fail(Code::out_of_memory);
  }
}

// Errors: std::system_error (no thread available).
std::future<void> SessionLink::run_aside(std::function<void()> work) const {
  if (!options_.fabric) return std::async(std::launch::async, std::move(work));
  options_.fabric->aside(std::move(work));
  return {};
}

void SessionLink::begin_opening() {
  again_ns_ = now_ns_ + pause_ns_;
  std::unique_ptr<Opening> opening;
  try {
    opening = std::make_unique<Opening>();
    opening->before = before_;
    opening->thread = run_aside([this, &into = *opening] {
      open(options_, wake_, into);
      into.is_done.store(true, std::memory_order_release);
      wake_();
    });
  } catch (const std::exception&) {  // no thread or no memory now
    return;
  }
  before_.reset();
  opening_ = std::move(opening);
}

// Calls proceed meanwhile; posts on memory never leave.
void SessionLink::begin_opening_memory() {
  wait_for_memory();
  std::unique_ptr<MemoryOpening> opening;
  try {
    opening = std::make_unique<MemoryOpening>();
    opening->connection = connection_;
    opening->thread = run_aside([this, &into = *opening] {
      try {
        into.opened = open_memory(options_, *into.connection);
      } catch (const std::exception&) {
        into.opened = fail(Code::out_of_memory);
      }
      into.is_done.store(true, std::memory_order_release);
      wake_();
    });
  } catch (const std::exception&) {
    return;
  }
  memory_opening_ = std::move(opening);
}

void SessionLink::wait_for_memory() {
  memory_again_ns_ = now_ns_ + memory_pause_ns_;
  memory_pause_ns_ = std::min(2 * memory_pause_ns_, options_.pause_max_ns);
}

// Discards a pair for a session that has ended. A peer that offers its memory to no session is not
// asked again.
bool SessionLink::take_memory() {
  if (!memory_opening_->is_done.load(std::memory_order_acquire)) return false;
  const std::unique_ptr<MemoryOpening> opening = std::move(memory_opening_);
  if (opening->connection != connection_) return true;
  if (!*opening->opened) {
    memory_may_come_ = may_come_later(opening->opened->error());
    return true;
  }
  memory_ = std::move(**opening->opened);
  memory_may_come_ = false;
  posts_.attach(memory_->pair());
  ended_ns_ = now_ns_;
  return true;
}

bool SessionLink::take_opened() {
  if (!opening_->is_done.load(std::memory_order_acquire)) return false;
  Result<OpenedPeer> opened = std::move(*opening_->opened);
  before_ = std::move(opening_->before);
  opening_.reset();
  // Exponential backoff while the peer is away.
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
  memory_may_come_ = opened.memory_may_come;
  memory_pause_ns_ = options_.pause_ns;
  wait_for_memory();
  asked_ = sending_ = lost_ = false;
  hear();
  ended_ns_ = polled_ns_ = now_ns_;
  ++sessions_;
  own_counts().up.store(true, std::memory_order_relaxed);
  own_counts().opened.fetch_add(1, std::memory_order_relaxed);
}

// A call whose message was sent in part counts as sent.
void SessionLink::lose(PeerEnds& ends) {
  own_counts().up.store(false, std::memory_order_relaxed);
  if (memory_) {
    memory_->pair().close();
    try {
      while (poll_memory(ends)) {  // completions before the end
      }
    } catch (const std::bad_alloc&) {  // these posts complete as unknown
    }
    posts_.detach();
    report_posts(ends);
    memory_.reset();
  }
  rings_.reset();
  before_ = std::move(connection_);
  again_ns_ = now_ns_ + options_.pause_ns;
  for (std::uint32_t tag = 0; tag < kCallsMax; ++tag) {
    const WaitingCall call = calls_[tag];
    if (call.state == WaitingCall::State::free) continue;
    free_call(tag);
    if (call.state == WaitingCall::State::given_up) continue;
    report(ends, {call.owner, PostEnd::unknown, Status::flushed});
  }
  asked_ = sending_ = lost_ = memory_may_come_ = false;
}

}  // namespace espalier::peer
