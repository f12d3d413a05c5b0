// SPDX-License-Identifier: Apache-2.0
#include "tests/support/peer_history.hpp"

#include <algorithm>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "fabric/region_table.hpp"

namespace espalier::test {
namespace {

using fabric::PostEnd;

constexpr const char* kVerbNames[] = {"READ", "WRITE", "add", "swap", "count", "order"};
constexpr const char* kEndNames[] = {"done", "refused", "unknown", "not sent"};

const char* name_of(std::optional<PostEnd> how) {
  return how ? kEndNames[static_cast<std::size_t>(*how)] : "never told";
}

// Where the bytes lie, as a session with a key of its own finds them. The memory stays as long as
// the object does, the key does not.
const std::byte* bytes_of_region(region::RegionObject& object) {
  const auto table = fabric::RegionTable::create(1).value();
  const auto key = object.offer(*table, fabric::RemoteRights::read, 0).value();
  fabric::RegionTable::Reader reader(*table);
  reader.enter();
  const std::byte* const bytes = reader.find(key.remote().key, key.remote().base, object.bytes(),
                                             fabric::RemoteRights::read, 0);
  reader.leave();
  return bytes;
}

}  // namespace

// --- regions -------------------------------------------------------------------------------------

std::uint32_t PeerHistory::add_region(std::uint32_t peer,
                                      std::shared_ptr<region::RegionObject> object) {
  Region& region = regions_.emplace_back();
  region.peer = peer;
  region.bytes = bytes_of_region(*object);
  region.object = std::move(object);
  return static_cast<std::uint32_t>(regions_.size() - 1);
}

std::uint64_t PeerHistory::word_at(const Region& region, std::uint32_t word) {
  if (region.bytes == nullptr) return region.last[word];
  return base::load_shared<std::uint64_t>(region.bytes + std::size_t{word} * 8);
}

void PeerHistory::region_dropped(std::uint32_t number) {
  for (const std::size_t each : regions_[number].posts) freeze(posts_[each]);
}

void PeerHistory::region_gone(std::uint32_t number) {
  Region& region = regions_[number];
  if (region.bytes == nullptr) return;
  observe(number);
  std::vector<std::uint64_t> last(kWords);
  for (std::uint32_t word = 0; word < kWords; ++word) last[word] = word_at(region, word);
  region.last = std::move(last);
  region.bytes = nullptr;
  region.object.reset();
}

// If a WRITE has arrived, earlier ones of the same session must have, too. Whether these left is
// reported later.
void PeerHistory::observe(std::uint32_t number) {
  Region& region = regions_[number];
  for (auto& [source, ordered] : region.by_source) {
    const std::uint64_t seen = word_at(region, kOrderWords + source);
    if (seen == ordered.seen) continue;
    if (seen < ordered.seen || seen > ordered.posts.size()) {
      return set_wrong("the WRITEs of process " + std::to_string(source) + " had come to " +
                       std::to_string(ordered.seen) + ", and then to " + std::to_string(seen));
    }
    const std::uint64_t session = posts_[ordered.posts[seen - 1]].post.session;
    for (std::uint64_t at = ordered.seen; at != seen; ++at) {
      Posted& earlier = posts_[ordered.posts[at]];
      if (earlier.post.session != session || !shows(earlier.post)) continue;
      if (earlier.how && *earlier.how != PostEnd::done) continue;
      if (words_with_value(earlier.post) == earlier.post.words) continue;
      earlier.overtaken = true;
    }
    ordered.seen = seen;
  }
}

// --- posts ---------------------------------------------------------------------------------------

bool PeerHistory::shows(const PeerPost& post) {
  return post.verb == PeerVerb::write || post.verb == PeerVerb::add;
}

std::string PeerHistory::name(std::size_t number) const {
  const Posted& posted = posts_[number];
  return std::string(kVerbNames[static_cast<std::size_t>(posted.post.verb)]) + " " +
         std::to_string(number) + " of process " + std::to_string(posted.post.source) +
         " to region " + std::to_string(posted.post.region) + " in session " +
         std::to_string(posted.post.session) + " (" + name_of(posted.how) + ")";
}

std::uint32_t PeerHistory::words_with_value(const PeerPost& post) const {
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < post.words; ++i) {
    found += word_at(regions_[post.region], post.word + i) == post.value ? 1 : 0;
  }
  return found;
}

std::optional<std::uint32_t> PeerHistory::take_words(std::uint32_t region, std::uint32_t count) {
  std::uint32_t& used = regions_[region].used;
  if (kWords - used < count) return std::nullopt;
  return std::exchange(used, used + count);
}

const PeerPost* PeerHistory::done_write(std::uint32_t region, std::uint64_t draw) const {
  const auto& done = regions_[region].writes_done;
  return done.empty() ? nullptr : &posts_[done[draw % done.size()]].post;
}

std::uint64_t PeerHistory::known_swap(std::uint32_t region) const {
  return regions_[region].known_swap;
}

std::size_t PeerHistory::posted(PeerPost& post) {
  Region& region = regions_[post.region];
  Ordered& ordered = region.by_source[post.source];
  ordered.posts.push_back(posts_.size());
  if (post.verb == PeerVerb::order) {
    post.word = kOrderWords + post.source;
    post.value = ordered.posts.size();
  }
  region.posts.push_back(posts_.size());
  posts_.emplace_back().post = post;
  if (region.bytes == nullptr || region.object->is_dropped()) freeze(posts_.back());
  return posts_.size() - 1;
}

void PeerHistory::ended(std::size_t number, PostEnd how, const std::uint64_t* old) {
  Posted& posted = posts_[number];
  if (posted.how) return set_wrong(name(number) + " has ended twice");
  posted.how = how;
  Region& region = regions_[posted.post.region];
  switch (how) {
    case PostEnd::done: ++reached_.done; break;
    case PostEnd::refused: ++reached_.refused; break;
    case PostEnd::unknown: ++reached_.unknown; break;
    case PostEnd::not_sent: ++reached_.not_sent; break;
  }
  if (how != PostEnd::done) return;
  if (posted.post.verb == PeerVerb::write) region.writes_done.push_back(number);
  if (old != nullptr) check_old(region, number, *old);
}

void PeerHistory::check_old(Region& region, std::size_t number, std::uint64_t old) {
  const PeerPost& post = posts_[number].post;
  if (post.verb == PeerVerb::read && old != post.value) {
    set_wrong(name(number) + " brought " + std::to_string(old) + " and not " +
              std::to_string(post.value));
  }
  if (post.verb == PeerVerb::add && old != 0) set_wrong(name(number) + " was done before");
  if (post.verb == PeerVerb::count && !region.counts.insert(old).second) {
    set_wrong(name(number) + " brought a number that another has had");
  }
  if (post.verb != PeerVerb::swap) return;
  region.known_swap = old;
  if (old == post.value) set_wrong(name(number) + " was done twice");
  if (old != post.compare) return;
  region.known_swap = post.value;
  if (!region.swapped_from.emplace(old, number).second) {
    set_wrong(name(number) + " swapped what another has swapped");
  }
}

void PeerHistory::freeze(Posted& posted) {
  if (posted.frozen || !shows(posted.post)) return;
  posted.frozen = words_with_value(posted.post);
}

void PeerHistory::session_began(std::uint32_t source, std::uint32_t peer, std::uint64_t session) {
  if (session > 1) ++reached_.sessions;
  for (Region& region : regions_) {
    if (region.peer != peer) continue;
    for (const std::size_t each : region.by_source[source].posts) {
      if (posts_[each].post.session < session) freeze(posts_[each]);
    }
  }
  for (CalledPeer& call : calls_) {
    if (call.source == source && call.peer == peer && call.session < session) call.over = true;
  }
}

void PeerHistory::key_revoked(fabric::RegionKey key) {
  ++reached_.other_keys;
  for (Posted& posted : posts_) {
    if (posted.post.key == key) freeze(posted);
  }
}

void PeerHistory::never_told(std::size_t number) {
  posts_[number].never_told = posts_[number].never_told || !posts_[number].how;
}

void PeerHistory::source_ended(std::uint32_t source) {
  for (std::size_t number = 0; number < posts_.size(); ++number) {
    if (posts_[number].post.source == source) never_told(number);
  }
}

// --- calls ---------------------------------------------------------------------------------------

std::uint32_t PeerHistory::called(std::uint32_t source, std::uint32_t peer, std::uint64_t session) {
  CalledPeer& call = calls_.emplace_back();
  call.source = source;
  call.peer = peer;
  call.session = session;
  return static_cast<std::uint32_t>(calls_.size() - 1);
}

void PeerHistory::call_begun(std::uint32_t number) {
  CalledPeer& call = calls_[number];
  if (++call.begun > 1) set_wrong("call " + std::to_string(number) + " was done twice");
  if (call.over) set_wrong("call " + std::to_string(number) + " begins in a later session");
}

void PeerHistory::call_ended(std::uint32_t number, PostEnd how) {
  CalledPeer& call = calls_[number];
  if (call.how) return set_wrong("call " + std::to_string(number) + " has ended twice");
  call.how = how;
  if (how == PostEnd::done) ++reached_.calls;
  if (how == PostEnd::unknown) ++reached_.calls_unknown;
  if (call.cancelled && how != PostEnd::unknown) {
    set_wrong("call " + std::to_string(number) + " was cancelled, and is " + name_of(how));
  }
}

// A cancelled call is checked when all posts with it have completed.
void PeerHistory::call_cancelled(std::uint32_t number) {
  CalledPeer& call = calls_[number];
  ++reached_.cancelled;
  call.cancelled = true;
  if (!call.how || call.how == PostEnd::unknown) return;
  set_wrong("call " + std::to_string(number) + " is cancelled, and was " + name_of(call.how));
}

// --- what is wrong -------------------------------------------------------------------------------

void PeerHistory::check_all() {
  for (std::uint32_t region = 0; region < regions_.size(); ++region) {
    if (regions_[region].bytes != nullptr) observe(region);
    check_counts(regions_[region]);
  }
  for (std::size_t number = 0; number < posts_.size(); ++number) check_post(number);
  for (std::size_t number = 0; number < calls_.size(); ++number) {
    const CalledPeer& call = calls_[number];
    const bool lost = call.how == PostEnd::done && call.begun == 0;
    const bool denied = call.how == PostEnd::not_sent && call.begun != 0;
    if (lost || denied || call.how == PostEnd::refused) {
      set_wrong("call " + std::to_string(number) + " ended as " + name_of(call.how) +
                ", and was done " + std::to_string(call.begun) + " times");
    }
  }
}

void PeerHistory::check_post(std::size_t number) {
  const Posted& posted = posts_[number];
  if (!posted.how && !posted.never_told) set_wrong(name(number) + " has not ended");
  reached_.never_told += posted.never_told ? 1 : 0;
  if (!shows(posted.post)) return;
  const PeerPost& post = posted.post;
  const std::uint32_t found = words_with_value(post);
  for (std::uint32_t i = 0; i < post.words; ++i) {
    const std::uint64_t word = word_at(regions_[post.region], post.word + i);
    if (word == 0 || word == post.value) continue;
    set_wrong(name(number) + " left " + std::to_string(word) + " and not " +
              std::to_string(post.value));
  }
  const bool none = posted.how == PostEnd::refused && post.verb == PeerVerb::add;
  if ((none || posted.how == PostEnd::not_sent) && found != 0) {
    set_wrong(name(number) + " has taken effect");
  }
  if (posted.how == PostEnd::done && found != post.words) {
    set_wrong(name(number) + " has taken no effect, or not all of it");
  }
  if (posted.frozen && *posted.frozen != found) {
    set_wrong(name(number) + " took effect when none of its key or session could any more");
  }
  const bool left = posted.how ? posted.how != PostEnd::not_sent : found != 0;
  if (posted.overtaken && left) {
    set_wrong(name(number) + " took effect after a later one, or never");
  }
  if (posted.how == PostEnd::unknown && found != 0) ++reached_.unknown_done;
}

void PeerHistory::check_counts(const Region& region) {
  std::uint64_t done = 0;
  std::uint64_t perhaps = 0;
  for (const std::size_t each : region.posts) {
    const Posted& posted = posts_[each];
    if (posted.post.verb != PeerVerb::count) continue;
    done += posted.how == PostEnd::done ? 1 : 0;
    perhaps += !posted.how || posted.how == PostEnd::unknown ? 1 : 0;
  }
  const std::uint64_t counted = word_at(region, kCountWord);
  if (counted < done || counted > done + perhaps) {
    set_wrong(std::to_string(counted) + " were counted, where " + std::to_string(done) +
              " are done and " + std::to_string(perhaps) + " perhaps");
  }
}

}  // namespace espalier::test
