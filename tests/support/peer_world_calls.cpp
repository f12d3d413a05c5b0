// SPDX-License-Identifier: Apache-2.0
// The requests of peer_world_node.hpp: a few rounds, in each of which some posts go to peers
// together; a peer's region is opened first in each new session.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/region/calls.hpp"
#include "tests/support/peer_world_node.hpp"

namespace espalier::test {
namespace {

using fabric::PostEnd;
using offload::Call;
using offload::Next;
using offload::PeerBatch;
using offload::PeerEnd;

constexpr std::size_t kBatchMost = offload::PostsOfRequest::kMost;
constexpr std::uint32_t kWriteWordsMost = 20;  // three lines at most

/// A call to a peer, with what it points to.
struct SentCall {
  std::uint32_t number = 0;  // in the history
  wire::CallMessage message;
  channel::PeerAnswer answer;
  std::array<std::byte, sizeof(region::RegionGrant)> into{};  // of the longest answer
};

/// One post of a round. Its bytes stay where they are.
struct RoundPost {
  bool is_call = false;
  std::size_t number = 0;  // of the post in the history
  PeerPost post;
  std::array<std::uint64_t, kWriteWordsMost> words{};
  SentCall call;
};

/// A request. It may be destroyed before its posts complete: then its client is gone.
struct PeerWorldRun {
  PeerWorldRun() = default;
  PeerWorldRun(const PeerWorldRun&) = delete;
  PeerWorldRun& operator=(const PeerWorldRun&) = delete;
  ~PeerWorldRun() {
    for (const RoundPost& made : posts) {
      if (!made.is_call) node->parts().history.never_told(made.number);
    }
  }

  PeerWorldNode* node = nullptr;
  enum class Mode : std::uint8_t { begins, opens, asks_for_key, posts };
  Mode mode = Mode::begins;
  std::uint32_t rounds = 0;  // to go
  std::size_t link = 0;      // whose region is requested
  std::uint64_t session = 0;
  std::uint32_t region = 0;
  bool far = false;  // its calls must not leave
  SentCall asked;
  std::vector<RoundPost> posts;
};

std::string_view bytes_of_answer(const SentCall& call) {
  return {reinterpret_cast<const char*>(call.into.data()),
          std::min(call.into.size(), call.answer.payload_bytes)};
}

template <class Reply>
std::optional<Reply> reply_to(const SentCall& call) {
  if (call.answer.header.code != 0) return std::nullopt;
  const auto reply = wire::read_reply<Reply>(call.answer.header, bytes_of_answer(call));
  return reply ? std::optional<Reply>(*reply) : std::nullopt;
}

// --- regions of peers ----------------------------------------------------------------------------

Next ask_peer(Call& call, PeerWorldRun& run, const wire::CallMessage& message) {
  run.asked.message = message;
  run.asked.answer = {};
  run.asked.answer.into = run.asked.into;
  PeerBatch batch(call);
  batch.call(run.link, run.session, run.asked.message, run.asked.answer);
  return batch.completed();
}

Next open_peer_region(Call& call, PeerWorldRun& run, std::size_t link) {
  run.mode = PeerWorldRun::Mode::opens;
  run.link = link;
  run.session = offload::PeerPosts::of(call).link(link).session();
  return ask_peer(call, run, {.offload = region_calls::Open::kCall.id, .key = kPeerWorldRegion});
}

Next ask_for_key(Call& call, PeerWorldNode& node, PeerWorldRun& run) {
  run.mode = PeerWorldRun::Mode::asks_for_key;
  const auto opened = reply_to<region_calls::Opened>(run.asked);
  if (!opened) return call.again();  // temporarily there is none
  run.region = PeerHistory::number_of(opened->bytes);
  const bool another = node.parts().other_keys && node.parts().random.chance(0.1);
  return ask_peer(call, run,
                  {.offload = region_calls::OpenKey::kCall.id,
                   .map = opened->id,
                   .argument = another ? region_calls::OpenKey::kAnother : 0});
}

// Answers come in the order in which the peer has given them, so what came last is good.
void keep_key(PeerWorldNode& node, const PeerWorldRun& run) {
  const auto granted = reply_to<region_calls::Granted>(run.asked);
  if (!granted) return;
  PeerWorldNode::Grant& known = node.grant(run.link);
  if (run.session < known.session) return;
  const bool other = known.session == run.session && known.grant.key != granted->grant.key;
  if (other && known.region == run.region) node.parts().history.key_revoked(known.grant.key);
  known = {run.session, run.region, granted->grant};
}

// --- posts ---------------------------------------------------------------------------------------

/// What is posted, and to which words.
bool draw_post(PeerWorldNode& node, const PeerWorldNode::Grant& grant, RoundPost& made) {
  base::Random& random = node.parts().random;
  PeerHistory& history = node.parts().history;
  PeerPost& post = made.post;
  post = {.source = node.source(),
          .region = grant.region,
          .session = grant.session,
          .key = grant.grant.key,
          .value = history.next_value()};
  const std::uint64_t kind = random.between(0, 9);
  if (kind < 4) {
    post.verb = PeerVerb::write;
    post.words = static_cast<std::uint32_t>(random.chance(0.6) ? 1 : random.between(2, 20));
  } else if (kind < 6) {
    post.verb = PeerVerb::add;
  } else if (kind < 7) {
    post.verb = PeerVerb::swap;
    post.word = PeerHistory::kSwapWord;
    post.compare = history.known_swap(grant.region);
    return true;
  } else if (kind < 8) {
    post.verb = PeerVerb::count;
    post.word = PeerHistory::kCountWord;
    return true;
  } else {
    const PeerPost* const there = history.done_write(grant.region, random());
    if (there == nullptr) return false;
    post.verb = PeerVerb::read;
    post.word = there->word;
    post.words = there->words;
    post.value = there->value;
    return true;
  }
  const auto words = history.take_words(grant.region, post.words);
  post.word = words.value_or(0);
  return words.has_value();
}

void add_to_batch(PeerBatch& batch, std::size_t link, const PeerWorldNode::Grant& grant,
                  RoundPost& made) {
  const PeerPost& post = made.post;
  const fabric::RegionKey key = grant.grant.key;
  const std::uint64_t at = grant.grant.base + std::uint64_t{post.word} * 8;
  const auto words = std::span(made.words).first(post.words);
  auto* const old = reinterpret_cast<std::byte*>(made.words.data());
  made.words.fill(post.verb == PeerVerb::write || post.verb == PeerVerb::order ? post.value : 0);
  switch (post.verb) {
    case PeerVerb::read:
      return batch.read(link, post.session, std::as_writable_bytes(words), key, at);
    case PeerVerb::write:
    case PeerVerb::order: return batch.write(link, post.session, std::as_bytes(words), key, at);
    case PeerVerb::add: return batch.fetch_add(link, post.session, key, at, post.value, old);
    case PeerVerb::count: return batch.fetch_add(link, post.session, key, at, 1, old);
    case PeerVerb::swap:
      return batch.compare_swap(link, post.session, key, at, post.compare, post.value, old);
  }
}

void add_call(Call& call, PeerWorldNode& node, PeerBatch& batch, PeerWorldRun& run,
              std::size_t link) {
  RoundPost& made = run.posts.emplace_back();
  made.is_call = true;
  const std::uint64_t session = offload::PeerPosts::of(call).link(link).session();
  SentCall& sent = made.call;
  sent.number = node.parts().history.called(node.source(), node.peer(link), session);
  sent.message = {.offload = kPeerWorldCall, .map = 1, .argument = sent.number};
  sent.answer.into = sent.into;
  run.far = run.far || call.request().hops() == wire::kHopsMax;
  batch.call(link, session, sent.message, sent.answer);
}

void add_post(PeerWorldNode& node, PeerBatch& batch, PeerWorldRun& run, std::size_t link,
              PeerVerb only) {
  PeerWorldNode::Grant& grant = node.grant(link);
  RoundPost& made = run.posts.emplace_back();
  if (only == PeerVerb::order) {
    made.post = {.verb = only,
                 .source = node.source(),
                 .region = grant.region,
                 .session = grant.session,
                 .key = grant.grant.key};
  } else if (!draw_post(node, grant, made)) {
    run.posts.pop_back();
    return;
  }
  made.number = node.parts().history.posted(made.post);
  add_to_batch(batch, link, grant, made);
}

// Mostly few posts: so a turn has those of several requests.
std::size_t draw_posts(const PeerWorldParts& parts) {
  base::Random& random = parts.random;
  return random.chance(0.9) ? random.between(1, parts.posts) : random.between(1, kBatchMost - 4);
}

Next post_round(Call& call, PeerWorldNode& node, PeerWorldRun& run) {
  PeerWorldParts& parts = node.parts();
  const std::size_t links = parts.nodes - 1;
  const std::size_t first = parts.random.below(links);
  const auto& link = offload::PeerPosts::of(call).link(first);
  const bool stale = node.grant(first).session != link.session() || parts.random.chance(0.02);
  // Now and then it posts by what it knows of a session that is over.
  if (node.grant(first).session == 0 || (stale && !parts.random.chance(0.1))) {
    return open_peer_region(call, run, first);
  }
  run.mode = PeerWorldRun::Mode::posts;
  run.posts.clear();
  run.posts.reserve(kBatchMost);  // what is posted stays where it is
  PeerBatch batch(call);
  run.far = false;
  for (std::size_t count = draw_posts(parts); count != 0; --count) {
    const std::size_t to = parts.random.chance(0.6) ? first : parts.random.below(links);
    if (node.grant(to).session == 0) continue;
    // Calls of calls are fewer, so that they come to an end.
    if (parts.random.chance(call.map_number() == 1 ? parts.calls / 3 : parts.calls)) {
      add_call(call, node, batch, run, to);
    } else {
      add_post(node, batch, run, to, PeerVerb::write);
    }
  }
  add_post(node, batch, run, first, PeerVerb::order);
  return batch.completed();
}

void take_call_end(PeerWorldNode& node, const SentCall& sent, const PeerEnd& end) {
  node.parts().history.call_ended(sent.number, end.how);
  if (end.how == PostEnd::unknown && end.status == fabric::Status::retry_exceeded) {
    ++node.parts().reached.given_up;
  }
  if (end.how != PostEnd::done) return;
  std::uint32_t number = 0;
  const std::string_view said = bytes_of_answer(sent);
  if (said.size() == sizeof number) std::memcpy(&number, said.data(), sizeof number);
  if (sent.answer.header.code != 0 || number != sent.number) {
    node.parts().history.set_wrong(
        "call " + std::to_string(sent.number) + " is answered with code " +
        std::to_string(sent.answer.header.code) + " as " + std::to_string(number));
  }
}

bool brings_as_expected(const RoundPost& made) {
  const auto words = std::span(made.words).first(made.post.words);
  return std::ranges::all_of(words, [&](auto word) { return word == made.post.value; });
}

void take_ends(PeerWorldNode& node, PeerWorldRun& run, std::span<const PeerEnd> ends) {
  PeerHistory& history = node.parts().history;
  if (ends.size() != run.posts.size()) history.set_wrong("ends of other posts are told");
  for (std::size_t i = 0; i < std::min(ends.size(), run.posts.size()); ++i) {
    const RoundPost& made = run.posts[i];
    if (run.far && ends[i].how != PostEnd::not_sent) history.set_wrong("a third hop has left");
    if (node.parts().quiet && !run.far && ends[i].how != PostEnd::done) {
      history.set_wrong("a post is not done though nothing is wrong any more");
    }
    if (made.is_call) {
      take_call_end(node, made.call, ends[i]);
      continue;
    }
    const bool brings = made.post.verb != PeerVerb::write && made.post.verb != PeerVerb::order;
    history.ended(made.number, ends[i].how, brings ? made.words.data() : nullptr);
    const bool read = made.post.verb == PeerVerb::read && ends[i].how == PostEnd::done;
    if (read && !brings_as_expected(made)) history.set_wrong("a READ brought what is not there");
  }
  run.posts.clear();
}

void begin_run(Call& call, PeerWorldNode& node, PeerWorldRun& run) {
  run.node = &node;
  run.rounds = static_cast<std::uint32_t>(node.parts().random.between(1, 3));
  if (call.map_number() != 1) return;
  if (call.request().hops() == 0) node.parts().history.set_wrong("a call of a peer has no hop");
  if (call.request().hops() == wire::kHopsMax) ++node.parts().reached.far_calls;
  node.parts().history.call_begun(call.argument());
}

Next run_request(Call& call) {
  PeerWorldNode& node = call.services().part<PeerWorldPart>().node;
  PeerWorldRun& run = call.state<PeerWorldRun>();
  const auto ends = offload::peer_ends(call);
  switch (run.mode) {
    case PeerWorldRun::Mode::begins: begin_run(call, node, run); break;
    case PeerWorldRun::Mode::opens:
      if (!ends.empty() && ends[0].how == PostEnd::done) return ask_for_key(call, node, run);
      break;
    case PeerWorldRun::Mode::asks_for_key:
      if (!ends.empty() && ends[0].how == PostEnd::done) keep_key(node, run);
      break;
    case PeerWorldRun::Mode::posts: take_ends(node, run, ends); break;
  }
  if (run.rounds-- != 0) return post_round(call, node, run);
  const std::uint32_t number = call.argument();
  return call.answer({}, {{reinterpret_cast<const char*>(&number), sizeof number}});
}

// It comes to its end sooner.
void cancel_run(Call& call) {
  PeerWorldRun* const run = call.find_state<PeerWorldRun>();
  if (run == nullptr) return;
  run->rounds = 0;
  if (call.map_number() == 1) run->node->parts().history.call_cancelled(call.argument());
}

}  // namespace

std::span<const offload::Offload> peer_world_calls() {
  static constexpr offload::Offload kCalls[] = {
      {{.id = kPeerWorldCall,
        .name = "peers",
        .format = "",
        .summary = "posts to peers",
        .right = offload::Right::none,
        .limits = {}},
       {.step = run_request, .executor = &offload::kPeerPosts, .cancel = cancel_run}}};
  return kCalls;
}

}  // namespace espalier::test
