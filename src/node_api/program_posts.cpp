// SPDX-License-Identifier: Apache-2.0
#include "node_api/program_posts.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "engine/node_parts.hpp"
#include "engine/peer_posts.hpp"
#include "kinds/region/calls.hpp"
#include "wire/refusal.hpp"

namespace espalier::node_api {
namespace {

using offload::Call;
using offload::Next;
using program::Post;
using program::RunningCall;
using region::RegionGrant;
using Verb = Post::Verb;

/// Regions of peers that this worker has keys of.
struct KnownRegions final : offload::SchedulerPart {
  static constexpr std::size_t kMost = 1024;  // more are forgotten, and asked for again
  struct Known {
    std::uint64_t session = 0;
    RegionGrant grant{};
  };
  std::map<std::pair<std::size_t, std::string>, Known> all;

  /// Null: not known in this session.
  [[nodiscard]] const Known* find(std::size_t peer, const std::string& name,
                                  std::uint64_t session) const {
    const auto found = all.find({peer, name});
    return found != all.end() && found->second.session == session ? &found->second : nullptr;
  }
};

bool is_atomic(Verb verb) { return verb == Verb::fetch_add || verb == Verb::compare_swap; }

std::size_t bytes_of_post(const Post& post) {
  if (is_atomic(post.verb)) return region::kWordBytes;
  return post.verb == Verb::read ? post.into.size() : post.from.size();
}

/// Why a post on memory cannot leave.
std::optional<Error> fault_of(const Post& post, const RegionGrant& grant) {
  const std::size_t bytes = bytes_of_post(post);
  auto wrong = region::fault_of_range(grant.bytes, post.offset, bytes);
  if (!wrong && is_atomic(post.verb)) wrong = region::fault_of_word(grant.bytes, post.offset);
  if (!wrong && bytes > std::numeric_limits<std::uint32_t>::max()) {
    wrong = region::RegionFault::beyond;
  }
  if (wrong) return Error{Code::invalid_argument, 0, static_cast<std::uint32_t>(*wrong)};
  if (is_atomic(post.verb) && (grant.flags & region::kGrantsAtomics) == 0) {
    return Error{Code::unsupported, 0, 0};
  }
  return std::nullopt;
}

void add(offload::PeerBatch& batch, std::size_t peer, const KnownRegions::Known& known,
         const Post& post) {
  const std::uint64_t at = known.grant.base + post.offset;
  const auto key = known.grant.key;
  auto* const before = reinterpret_cast<std::byte*>(post.before);
  switch (post.verb) {
    case Verb::read: return batch.read(peer, known.session, post.into, key, at);
    case Verb::write: return batch.write(peer, known.session, post.from, key, at);
    case Verb::fetch_add: return batch.fetch_add(peer, known.session, key, at, post.first, before);
    case Verb::compare_swap:
      return batch.compare_swap(peer, known.session, key, at, post.first, post.swap, before);
    case Verb::call: break;
  }
}

PostEnd how_of(fabric::PostEnd how) {
  switch (how) {
    case fabric::PostEnd::done: return PostEnd::done;
    case fabric::PostEnd::refused: return PostEnd::refused;
    case fabric::PostEnd::unknown: return PostEnd::unknown;
    case fabric::PostEnd::not_sent: break;
  }
  return PostEnd::not_sent;
}

Error error_of(const offload::PeerEnd& end) {
  if (end.how == fabric::PostEnd::done) return {};
  if (end.how == fabric::PostEnd::refused) return {Code::not_permitted, 0, 0};
  if (end.status == fabric::Status::local_length) return {Code::invalid_argument, 0, 0};
  return {Code::connection_lost, 0, 0};
}

template <class Reply>
Result<Reply> reply_of(const channel::PeerAnswer& answer, std::string_view payload) {
  if (answer.header.code != 0) {
    return std::unexpected(wire::error_in(answer.header.code, payload));
  }
  const auto reply = wire::read_reply<Reply>(answer.header, payload);
  if (!reply) return fail(Code::corrupt);
  return *reply;
}

}  // namespace

std::string_view ProgramPosts::Asked::payload() const {
  return {reinterpret_cast<const char*>(bytes.data()),
          std::min(answer.payload_bytes, bytes.size())};
}

std::optional<Next> ProgramPosts::go_on(Call& call, RunningCall& running) {
  switch (stage_) {
    case Stage::none: return begin(call, running);
    case Stage::opens: return ask_for_keys(call, running);
    case Stage::keys: return keep_keys(call, running);
    case Stage::posts: break;
  }
  return finish(call, running);
}

std::optional<Next> ProgramPosts::begin(Call& call, RunningCall& running) {
  auto& executor = offload::PeerPosts::of(call);
  const auto& known = call.scheduler_part<KnownRegions>();
  peers_.clear();
  asked_.clear();
  for (const Post& post : running.posts()) {
    const auto peer = executor.find(post.peer);
    if (!peer) return refuse(running, {Code::unsupported, 0, 0});
    peers_.push_back(*peer);
    if (post.verb == Verb::call) continue;
    const std::uint64_t session = executor.link(*peer).session();
    if (session == 0) return refuse(running, {Code::connection_lost, 0, 0});
    const auto is_same = [&](const Asked& each) {
      return each.peer == *peer && each.region == post.region;
    };
    if (known.find(*peer, post.region, session) == nullptr &&
        std::ranges::none_of(asked_, is_same)) {
      asked_.push_back({.peer = *peer, .region = post.region, .session = session});
    }
  }
  if (asked_.empty()) return post(call, running);
  for (Asked& each : asked_) {  // which stay where they are from now on
    each.message = {.offload = region_calls::Open::kCall.id, .key = each.region};
  }
  return ask_all(call, Stage::opens);
}

Next ProgramPosts::ask_all(Call& call, Stage stage) {
  offload::PeerBatch batch(call);
  for (Asked& each : asked_) {
    each.answer = {.into = each.bytes};
    batch.call(each.peer, each.session, each.message, each.answer);
  }
  const Next next = batch.completed();
  stage_ = stage;
  return next;
}

bool ProgramPosts::are_answered(const Call& call, RunningCall& running) {
  const auto ends = peer_ends(call);
  const bool all = std::ranges::all_of(
      ends, [](const offload::PeerEnd& end) { return end.how == fabric::PostEnd::done; });
  if (!all) refuse(running, {Code::connection_lost, 0, 0});
  return all;
}

std::optional<Next> ProgramPosts::ask_for_keys(Call& call, RunningCall& running) {
  if (!are_answered(call, running)) return std::nullopt;
  for (Asked& each : asked_) {
    const auto opened = reply_of<region_calls::Opened>(each.answer, each.payload());
    if (!opened) return refuse(running, opened.error());
    each.message = {.offload = region_calls::OpenKey::kCall.id, .map = opened->id};
  }
  return ask_all(call, Stage::keys);
}

std::optional<Next> ProgramPosts::keep_keys(Call& call, RunningCall& running) {
  if (!are_answered(call, running)) return std::nullopt;
  auto& known = call.scheduler_part<KnownRegions>().all;
  if (known.size() + asked_.size() > KnownRegions::kMost) known.clear();
  for (const Asked& each : asked_) {
    const auto granted = reply_of<region_calls::Granted>(each.answer, each.payload());
    if (!granted) return refuse(running, granted.error());
    known[{each.peer, each.region}] = {each.session, granted->grant};
  }
  return post(call, running);
}

std::optional<Next> ProgramPosts::post(Call& call, RunningCall& running) {
  const auto& known = call.scheduler_part<KnownRegions>();
  auto& executor = offload::PeerPosts::of(call);
  const auto posts = running.posts();
  offload::PeerBatch batch(call);
  called_.assign(posts.size(), {});
  for (std::size_t i = 0; i < posts.size(); ++i) {
    const Post& each = posts[i];
    if (each.verb == Verb::call) {
      Called& called = called_[i];
      called.message = {.offload = static_cast<wire::OffloadId>(each.number),
                        .payload = each.request};
      if (each.reply != nullptr) {
        each.reply->resize(std::max<std::size_t>(each.reply_bytes_max, sizeof(Error::detail)));
        called.answer.into = std::as_writable_bytes(std::span(*each.reply));
      }
      batch.call(peers_[i], channel::PeerLink::kAnySession, called.message, called.answer);
      continue;
    }
    // The session may have ended while the keys were asked for.
    const auto* const grant =
        known.find(peers_[i], each.region, executor.link(peers_[i]).session());
    if (grant == nullptr) return refuse(running, {Code::connection_lost, 0, 0});
    if (const auto wrong = fault_of(each, grant->grant)) return refuse(running, *wrong);
    add(batch, peers_[i], *grant, each);
  }
  const Next next = batch.completed();
  stage_ = Stage::posts;
  return next;
}

std::optional<Next> ProgramPosts::finish(const Call& call, RunningCall& running) {
  const auto ended = peer_ends(call);
  const auto posts = running.posts();
  std::vector<PeerEnd> ends;
  for (std::size_t i = 0; i < posts.size(); ++i) {
    PeerEnd& end = ends.emplace_back(how_of(ended[i].how), error_of(ended[i]));
    if (posts[i].verb != Verb::call) continue;
    const channel::PeerAnswer& answer = called_[i].answer;
    std::string* const reply = posts[i].reply;
    const bool answered = end.how == PostEnd::done;
    if (reply != nullptr) reply->resize(std::min(answer.payload_bytes, reply->size()));
    if (answered && answer.header.code != 0) {
      end.error = wire::error_in(answer.header.code,
                                 reply != nullptr ? std::string_view(*reply) : std::string_view());
    } else if (answered && answer.payload_bytes > posts[i].reply_bytes_max) {
      end.error = {Code::corrupt, 0, posts[i].number};
    }
    if (reply != nullptr && (!answered || end.error.code != Code::invalid)) reply->clear();
  }
  stage_ = Stage::none;
  running.posts_ended(std::move(ends));
  return std::nullopt;
}

std::optional<Next> ProgramPosts::refuse(RunningCall& running, const Error& why) {
  stage_ = Stage::none;
  running.refuse_posts(why);
  return std::nullopt;
}

}  // namespace espalier::node_api
