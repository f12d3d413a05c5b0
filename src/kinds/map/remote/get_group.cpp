// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/remote/get_group.hpp"

#include <algorithm>
#include <coroutine>
#include <cstring>
#include <new>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "base/prefetch.hpp"
#include "kinds/map/walk/find_point.hpp"
#include "kinds/map/walk/next_step.hpp"

namespace espalier::place {
namespace {

// What lies between images, so that the same parts of many nodes do not fall into the same sets of
// a cache; and room for searches that look at whole vectors.
constexpr std::size_t kBetweenImages = 11 * base::kLineBytes;
// What was taken of a queue stands there until it is so many, or all.
constexpr std::size_t kQueueMost = 4096;
// Of a value: its header, and what is read beside it, for READs are of whole words.
constexpr std::size_t kValueRoom = GetGroup::kValueMost + sizeof(wire::ValueHeader) + 16;
static_assert(kValueRoom % 8 == 0);
// Gets whose fences tie and come with the leaf, after one that missed them.
constexpr std::uint32_t kFencesAfterMiss = 256;

}  // namespace

GetGroup::GetGroup(ReaderState& state, const tree::MapView& view, std::uint32_t most)
    : state_(state), view_(view), gets_(std::clamp(most, 1u, kMost)) {
  const std::size_t stride = (view.geometry.node_bytes + kBetweenImages) / 8;
  images_ = std::make_unique_for_overwrite<std::uint64_t[]>(gets_.size() * stride);
  for (std::size_t i = 0; i < gets_.size(); ++i) {
    gets_[i].image = reinterpret_cast<std::byte*>(images_.get() + i * stride);
  }
  begun_.reserve(gets_.size());
  reads_.ready = &ready_;
  reads_.walk = std::noop_coroutine();
}

void GetGroup::submit(std::span<const Request> gets, Handler& handler) {
  // Nothing fails from here on.
  if (const std::size_t most = pending() + gets.size(); others_.capacity() < most) {
    others_.reserve(2 * most);
  }
  for (const Request& get : gets) queue_.push_back({&get, &handler});
}

template <class Stays>
void GetGroup::sift(const Stays& stays) {
  std::erase_if(begun_, [&](std::uint32_t i) {
    if (stays(gets_[i])) return false;
    give_up(gets_[i]);
    return true;
  });
}

// --- beginning -----------------------------------------------------------------------------------

void GetGroup::begin() {
  if (taken_ == queue_.size()) return;
  LeaseGuard& lease = *state_.lease;
  take_queued();
  // Whoever must wait for a lease does so in the walker.
  if (lease.ended() || state_.port->failed() || !lease.believed(state_.now())) {
    return sift([](const Get&) { return false; });
  }
  tick_ = lease.begin();
  term_ = lease.term();
  find_leaves();
  find_heads();
  if (begun_.empty()) return lease.end(tick_);
  want_leaves();
  send();
}

void GetGroup::send() {
  reads_.walks = begun_.size();
  state_.port->send(reads_);
  state_.port->poll();
}

void GetGroup::take_queued() {
  const std::size_t count = std::min(queue_.size() - taken_, gets_.size());
  const auto next = std::span(queue_).subspan(taken_, count);
  for (const Queued& queued : next) base::prefetch_line(queued.request->key.data());
  for (std::uint32_t i = 0; i < count; ++i) {
    gets_[i].request = next[i].request;
    gets_[i].handler = next[i].handler;
    gets_[i].misled = false;
    begun_.push_back(i);
  }
  taken_ += count;
  if (taken_ == queue_.size() || taken_ >= kQueueMost) {
    queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
  }
  const std::size_t key_bytes_max = view_.geometry.key_bytes_max;
  sift([&](Get& get) {
    const std::string_view key = get.request->key;
    if (key.empty() || key.size() > key_bytes_max) return false;
    get.cursor.key.assign(key);
    get.cursor.other_predecessor = {};
    get.value = {};
    return true;
  });
}

// Which leaf it is, and where.
void GetGroup::find_leaves() {
  MapCache& cache = *state_.cache;
  sift([&](Get& get) { return cache.find_group(get.cursor.key, get.above); });
  sift([&](Get& get) { return cache.bring_group(get.above); });
  sift([&](Get& get) {
    get.lid = cache.leaf_in(get.cursor.key, get.above);
    return get.lid != 0;
  });
  sift([&](Get& get) {
    get.ref = cache.place(get.lid);
    const bool known = get.ref && view_.holds_node(get.ref);
    if (known) cache.prefetch_leaf_head(get.ref);
    return known;
  });
}

void GetGroup::find_heads() {
  MapCache& cache = *state_.cache;
  sift([&](Get& get) {
    get.kept = cache.kept_leaf_head(get.ref);
    if (get.kept == nullptr) return false;
    base::prefetch(get.kept, get.kept + NodeCache::kChunkBytes);
    return true;
  });
}

// The header before all else, and what confirms a leaf behind all of it.
void GetGroup::want_leaves() {
  reads_.failed = false;
  if (!tree::planted(tree::Bug::read_version_kept) || read_version_ == 0) {
    want_map_head(*state_.port, reads_, view_, header_);
  }
  for (const std::uint32_t i : begun_) {
    Get& get = gets_[i];
    const std::size_t wanted = reads_.wanted.size();
    const std::byte* const image = state_.cache->leaf_head_from(get.kept);
    want_leaf(get, tree::NodeView(image, view_.geometry));
    state_.port->prefetch(reads_, wanted);  // while the next ones are looked at
  }
}

void GetGroup::want_leaf(Get& get, const tree::NodeView& head) {
  const tree::LeafProbe probe = tree::probe_leaf(head, get.cursor.key, view_.kit);
  get.lock = head.lock_word().bits;
  get.brought = tree::guessed_point_bytes(head, probe, state_.cache->knows_logs());
  const std::uint32_t node_end = view_.geometry.node_bytes;
  if (fences_come_ != 0 && tree::needs_fences(get.cursor, tree::NodeHead::read(head.bytes()))) {
    --fences_come_;
    get.brought.fences_begin = std::min(head.fence_begin(), node_end);
  }
  ReadPort& port = *state_.port;
  const auto want = [&](std::uint32_t begin, std::uint32_t end) {
    if (end > begin) port.want(reads_, get.ref.offset() + begin, get.image + begin, end - begin);
  };
  want(0, view_.geometry.sorted_begin);
  want(get.brought.begin, get.brought.end);
  want(get.brought.log_begin, get.brought.log_end);
  want(get.brought.fences_begin, node_end);
  port.want(reads_, get.ref.offset(), get.proof, sizeof get.proof);
}

// --- ending --------------------------------------------------------------------------------------

void GetGroup::end() {
  if (reads_.waiting) return;
  static_cast<void>(ready_.pop());
  LeaseGuard& lease = *state_.lease;
  // One look at the clock serves all: it comes after the last READ of all of them.
  const bool held = term_ == lease.term() &&
                    (lease.believed(state_.now()) || tree::planted(tree::Bug::belief_not_checked));
  const bool good = held && !reads_.failed && (values_come_ || take_version());
  if (values_come_) {
    sift([&](Get& get) { return good && answer_value(get); });
    begun_.clear();
  } else {
    sift([&](Get& get) { return good && answer(get); });
    std::erase_if(begun_, [this](std::uint32_t i) { return gets_[i].value.ref == 0; });
  }
  values_come_ = !begun_.empty() && want_values();
  if (!values_come_) return lease.end(tick_);
  send();
  end();
}

// Each where its leaf, which was confirmed, says that it is. False: there is no room for any.
bool GetGroup::want_values() {
  if (state_.port->failed()) {  // since the leaves have come: nothing can be wanted any more
    sift([](const Get&) { return false; });
    return false;
  }
  if (values_ == nullptr) {
    values_.reset(new (std::nothrow) std::uint64_t[gets_.size() * kValueRoom / 8]);
    if (values_ == nullptr) {
      sift([](const Get&) { return false; });
      return false;
    }
  }
  reads_.failed = false;
  for (const std::uint32_t i : begun_) {
    Get& get = gets_[i];
    const std::uint64_t offset = wire::Ref{get.value.ref}.offset();
    const std::size_t wanted = reads_.wanted.size();
    state_.port->want(reads_, offset, value_room(get), sizeof(wire::ValueHeader) + get.value.bytes);
    state_.port->want(reads_, offset, get.proof, sizeof get.proof);
    state_.port->prefetch(reads_, wanted);
  }
  return true;
}

std::byte* GetGroup::value_room(const Get& get) const {
  const auto index = static_cast<std::size_t>(&get - gets_.data());
  return reinterpret_cast<std::byte*>(values_.get() + index * kValueRoom / 8 + 1);
}

bool GetGroup::take_version() {
  const auto word = [this]<class T>(std::size_t at, T) {
    return base::load_plain<T>(header_ + at);
  };
  read_version_ = word(offsetof(wire::MapHeader, read_version), std::uint64_t{});
  return view_.same_map(word(offsetof(wire::MapHeader, map_id), std::uint32_t{}),
                        word(offsetof(wire::MapHeader, generation), std::uint32_t{}),
                        word(offsetof(wire::MapHeader, superseded), std::uint64_t{}));
}

bool GetGroup::answer(Get& get) {
  const tree::NodeView leaf(get.image, view_.geometry);
  const tree::NodeHead head = tree::NodeHead::read(get.image);
  const tree::SearchKey& key = get.cursor.key;
  get.cursor.read_version = read_version_;
  // A leaf keeps its fences while it lives.
  const bool proven =
      !tree::needs_fences(get.cursor, head) || get.brought.fences_begin <= leaf.fence_begin();
  if (!proven) {
    const std::uint64_t version = tree::as_of(view_, get.cursor);
    const bool leads = tree::leads_by_head(view_, key, version, get.image, head, get.ref);
    if (!head.leaf() || !leads) return false;
  } else if (tree::visit(view_, get.cursor, leaf, head, get.ref).kind != tree::StepKind::leaf) {
    get.misled = !leaf.covers(key) && !tree::is_another(view_, head, get.ref);
    return false;
  }
  const tree::LeafProbe probe = tree::probe_leaf(leaf, key, view_.kit);
  if (!get.brought.have(tree::point_bytes(leaf, probe))) return false;
  const bool confirmed = is_still(get.proof, get.ref, view_.id) ||
                         tree::planted(tree::Bug::not_confirmed) ||
                         tree::planted(tree::Bug::generation_not_confirmed);
  if (!confirmed) return false;
  Completion answer;
  bool out_of_line = false;
  answer.found = tree::find_point(key, leaf, probe, read_version_, answer, out_of_line);
  if (!answer.found && !proven && !tree::planted(tree::Bug::miss_believed)) {
    fences_come_ = kFencesAfterMiss;
    return false;
  }
  if (head.lock.bits != get.lock) state_.cache->keep_leaf(get.ref, get.image);
  if (out_of_line) {
    std::memcpy(&get.value, answer.value.data(), sizeof get.value);
    get.version = answer.version;
    return get.value.ref != 0 && get.value.bytes <= kValueMost &&
           view_.holds(wire::Ref{get.value.ref}.offset(),
                       sizeof(wire::ValueHeader) + get.value.bytes);
  }
  deliver(get, answer);
  return true;
}

// As a walk does: its buffer is still the one that was meant, and what lies there is that value.
bool GetGroup::answer_value(Get& get) {
  const wire::Ref at{get.value.ref};
  const std::byte* const value = value_room(get);
  wire::ValueHeader header;
  std::memcpy(&header, value, sizeof header);
  const bool whole = header.map_id == view_.id && header.bytes == get.value.bytes &&
                     (header.generation & wire::kGenerationMask) == at.generation();
  if (!whole) return false;
  if (!is_still(get.proof, at, view_.id) && !tree::planted(tree::Bug::value_not_confirmed)) {
    return false;
  }
  Completion answer;
  answer.found = true;
  answer.version = get.version;
  answer.value = {reinterpret_cast<const char*>(value) + sizeof header, get.value.bytes};
  deliver(get, answer);
  return true;
}

void GetGroup::deliver(Get& get, Completion& answer) {
  state_.samples.answered(get.lid);
  ++answered_;
  answer.tag = get.request->tag;
  answer.op = Op::get;
  answer.ok = true;
  answer.read_version = read_version_;
  get.handler->done(answer);
}

}  // namespace espalier::place
