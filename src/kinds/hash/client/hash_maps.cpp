// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/client/hash_maps.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "channel/objects.hpp"
#include "channel/reached.hpp"
#include "channel/rings/remote_sessions.hpp"
#include "kinds/hash/audit.hpp"
#include "kinds/hash/client/hash_pipelines.hpp"
#include "kinds/hash/client/hash_walks.hpp"
#include "kinds/hash/client/one_sided_hashes.hpp"
#include "kinds/hash/execute.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/hash/hash_threads.hpp"  // what a lease leads to, in line
#include "wire/message.hpp"

namespace espalier::client {
namespace {

HashMapOptions public_options(const hash::HashShape& shape, std::string_view group,
                              std::uint64_t durability = 0) {
  return {shape.partitions, shape.versions != 0, shape.snapshot_bytes_max,
          wire::durability_of(durability), std::string(group)};
}

Result<Written> written_of(const Result<hash_calls::ItemWritten>& reply) {
  if (!reply) return std::unexpected(reply.error());
  return Written{reply->version, reply->applied, reply->found};
}

// What a row says of lengths, in the words of the handle.
Result<void> check_lengths(std::string_view key, std::string_view value = {}) {
  if (key.empty() || key.size() > HashMap::kKeyBytesMax) return fail(Code::key_too_long);
  if (value.size() > HashMap::kValueBytesMax) return fail(Code::value_too_long);
  return {};
}

/// Makes a handle of an object that was reached.
struct MakeHashHandle {
  const std::shared_ptr<channel::Channel>& by;

  std::shared_ptr<HashMapImpl> operator()(HashMapImpl::Object&& object,
                                          const hash_calls::Opened& opened) const {
    return base::make_shared_until_fork<HashMapImpl>(
        by, std::move(object), public_options(opened.shape, opened.group, opened.durability));
  }
};

template <class Request>
Result<std::shared_ptr<HashMapImpl>> reach_hash(const std::shared_ptr<channel::Channel>& channel,
                                                const Request& request) {
  return channel::reach<hash::HashMap>(channel, request, MakeHashHandle{channel});
}

Result<std::optional<Version>> get_own(hash::HashMap& map, std::string_view key,
                                       std::string& value) {
  if (map.is_dropped()) return fail(Code::not_found, map.id());
  const auto lease = hash::HashThreadLease::take(map.store().threads);
  if (!lease) return std::unexpected(lease.error());
  const hash::KeyHash hashed = map.hash(key);
  const hash::ExposedEpoch exposed(**lease);
  const hash::HashAnswer answer = hash::HashReader::get_exposed(map, **lease, key, hashed);
  if (!answer.found) return std::nullopt;
  value.assign(answer.value);
  return answer.version;
}

Result<std::optional<Version>> get_of_node(channel::Channel& channel, channel::NodeNumber node,
                                           const hash_calls::Get& asked, std::string& value) {
  const wire::RequestMessage<hash_calls::Get> message(asked);
  auto answer = channel.ask(message.get(), node);
  if (!answer) return std::unexpected(answer.error().error);
  channel::Reply& reply = answer->reply;
  const auto read = wire::read_reply<hash_calls::ItemFound>(reply.header, reply.payload);
  if (!read || read->value.size() > HashMap::kValueBytesMax) return fail(Code::corrupt);
  if (!read->found) return std::nullopt;
  value.assign(read->value);
  return read->version;
}

/// The answer to one get.
class HashGetAnswer final : public Handler {
 public:
  explicit HashGetAnswer(std::string& value) : value_(value) {}
  void done(const Completion& completion) override {
    if (!completion.ok) {
      result = std::unexpected(completion.error);
    } else if (completion.found) {
      try {
        value_.assign(completion.value);
        result = completion.version;
      } catch (const std::bad_alloc&) {
        result = fail(Code::out_of_memory);
      }
    }
  }
  Result<std::optional<Version>> result;

 private:
  std::string& value_;
};

// Nothing: the rings are to answer.
std::optional<Result<std::optional<Version>>> get_alone(RemoteSessions& sessions,
                                                        channel::NodeNumber node, std::uint32_t map,
                                                        std::string_view key, std::string& value) {
  const auto session = RemoteLease::take_at(sessions, node);
  if (!session) return std::unexpected(session.error());
  auto& caller = (*session)->parts.of<OneSidedHashCaller>(sessions.walks());
  Request request;
  request.op = Op::get;
  request.key = key;
  HashGetAnswer answer(value);
  const tree::WalkTraffic before = caller.traffic();
  const bool answered = caller.run(sessions, node, map, request, answer);
  sessions.traffic().add(before, caller.traffic());
  if (!answered) return std::nullopt;
  return answer.result;
}

RemoteSessions* reads_alone(channel::Channel& channel) {
  auto* const sessions = dynamic_cast<RemoteSessions*>(&channel);
  return sessions != nullptr && sessions->reads_alone() ? sessions : nullptr;
}

}  // namespace

HashMapImpl::HashMapImpl(std::shared_ptr<channel::Channel> channel, Object object,
                         const HashMapOptions& options_in)
    : options(options_in),
      channel_(std::move(channel)),
      object_(std::move(object)),
      now_(&object_),
      alone_(reads_alone(*channel_)) {}

// It comes to an end: each round is at another node than the one before.
template <class Act>
auto HashMapImpl::at_node(const Act& act) -> decltype(act(std::declval<const Object&>())) {
  for (;;) {
    const Object& at = object();
    auto done = act(at);
    if (done || done.error().code != Code::not_found || at.own() != nullptr) return done;
    const auto opened = open_again(at);
    if (!opened) return std::unexpected(opened.error());
    if (!*opened) return done;
  }
}

Result<bool> HashMapImpl::open_again(const Object& before) {
  const wire::RequestMessage<hash_calls::Open> message(hash_calls::Open{name()});
  const auto answer = channel_->ask(message.get());
  if (!answer) {
    const Error& error = answer.error().error;
    if (error.code == Code::not_found || error.code == Code::wrong_kind) return false;
    return std::unexpected(error);
  }
  if (answer->node == before.node()) return false;
  const auto opened = channel::reply_in<hash_calls::Opened>(answer->reply);
  if (!opened) return std::unexpected(opened.error());
  if (public_options(opened->shape, opened->group, opened->durability) != options) return false;
  const std::lock_guard lock(mutex_);
  const auto is_there = [&](const Object& each) {
    return each.node() == answer->node && each.number() == opened->id;
  };
  const auto known = std::ranges::find_if(later_, is_there);
  if (is_there(object_)) {
    now_.store(&object_, std::memory_order_release);
  } else if (known != later_.end()) {
    now_.store(&*known, std::memory_order_release);
  } else {
    now_.store(&later_.emplace_back(name(), channel_, answer->node, opened->id),
               std::memory_order_release);
  }
  return true;
}

Result<std::optional<Version>> HashMapImpl::get(std::string_view key, std::string& value) {
  const Object* from = nullptr;
  return get_from(key, value, from);
}

Result<std::optional<Version>> HashMapImpl::get_from(std::string_view key, std::string& value,
                                                     const Object*& from) {
  from = &object_;
  if (const auto good = check_lengths(key); !good) return std::unexpected(good.error());
  if (object_.own() != nullptr) return get_own(*object_.own(), key, value);
  if (channel_->is_copy()) return fail(Code::forked);
  return at_node([&](const Object& at) -> Result<std::optional<Version>> {
    from = &at;
    if (alone_ != nullptr) {
      const auto got = get_alone(*alone_, at.node(), at.number(), key, value);
      if (got) return *got;
    }
    return get_of_node(*channel_, at.node(), {at.number(), key}, value);
  });
}

template <class Request>
Result<Written> HashMapImpl::write(std::string_view key, std::string_view value) {
  if (const auto good = check_lengths(key, value); !good) return std::unexpected(good.error());
  Request asked;
  asked.key = key;
  asked.value = value;
  return at_node([&](const Object& at) {
    asked.map = at.number();
    return written_of(at.ask(asked));
  });
}
template Result<Written> HashMapImpl::write<hash_calls::Put>(std::string_view, std::string_view);
template Result<Written> HashMapImpl::write<hash_calls::Insert>(std::string_view, std::string_view);
template Result<Written> HashMapImpl::write<hash_calls::Update>(std::string_view, std::string_view);

Result<Written> HashMapImpl::erase(std::string_view key) {
  if (const auto good = check_lengths(key); !good) return std::unexpected(good.error());
  return at_node([&](const Object& at) {
    return written_of(at.ask(hash_calls::Erase{at.number(), key}));
  });
}

Result<Written> HashMapImpl::compare_and_set(std::string_view key, const Condition& condition,
                                             std::optional<std::string_view> desired) {
  const bool by_version = condition.kind == ConditionKind::version;
  return compare_and_set_at(by_version ? &object() : nullptr, key, condition, desired);
}

Result<Written> HashMapImpl::compare_and_set_at(const Object* only, std::string_view key,
                                                const Condition& condition,
                                                std::optional<std::string_view> desired) {
  const auto good = check_lengths(key, desired.value_or(std::string_view()));
  if (!good) return std::unexpected(good.error());
  // No value is as long: it would fail at the end, if the message could be sent.
  if (condition.value.size() > HashMap::kValueBytesMax) return fail(Code::condition_failed);
  hash_calls::CompareAndSet asked;
  asked.key = key;
  asked.comparison.version = condition.version;
  asked.comparison.expected_bytes = static_cast<std::uint32_t>(condition.value.size());
  asked.comparison.kind = static_cast<std::uint8_t>(condition.kind);
  asked.comparison.erase = desired ? 0 : 1;
  asked.expected = condition.value;
  if (desired) asked.value = *desired;
  const std::size_t bytes = wire::kRequestHeaderBytes + sizeof asked.comparison + key.size() +
                            asked.expected.size() + asked.value.size();
  if (object_.own() == nullptr && bytes > wire::kMessageBytesMax) {
    return fail(Code::invalid_argument, wire::kMessageBytesMax);
  }
  return at_node([&](const Object& at) -> Result<Written> {
    if (only != nullptr && only != &at) return fail(Code::condition_failed);
    asked.map = at.number();
    return written_of(at.ask(asked));
  });
}

// Without versions the value itself says whether something came between: who puts back what was
// there has changed nothing. What was read at one node is not written at the next one, where the
// same version may be that of another value.
Result<Written> HashMapImpl::modify(
    std::string_view key,
    const std::function<std::optional<std::string>(std::optional<std::string_view>)>& change) {
  for (;;) {
    std::string value;
    const Object* from = nullptr;
    const auto found = get_from(key, value, from);
    if (!found) return std::unexpected(found.error());
    Condition condition{ConditionKind::absent, 0, {}};
    if (*found) {
      condition.kind = options.versions ? ConditionKind::version : ConditionKind::value;
      condition.version = **found;
      if (!options.versions) condition.value = value;
    }
    const auto desired = change(*found ? std::optional<std::string_view>(value) : std::nullopt);
    const auto written = compare_and_set_at(
        from, key, condition, desired ? std::optional<std::string_view>(*desired) : std::nullopt);
    if (written || written.error().code != Code::condition_failed) return written;
  }
}

Result<std::uint64_t> HashMapImpl::add(std::string_view key, std::uint64_t amount) {
  if (const auto good = check_lengths(key); !good) return std::unexpected(good.error());
  const auto summed = at_node([&](const Object& at) {
    return at.ask(hash_calls::Add{at.number(), key, amount});
  });
  if (!summed) return std::unexpected(summed.error());
  return summed->sum;
}

Result<std::uint64_t> HashMapImpl::walk(const ItemSink& sink) {
  if (object_.own() != nullptr) return walk_own(*object_.own(), sink);
  if (channel_->is_copy()) return fail(Code::forked);
  bool began = false;
  const ItemSink noticed = [&](std::span<const Item> items) {
    began = true;
    return sink(items);
  };
  return at_node([&](const Object& at) -> Result<std::uint64_t> {
    if (began) return fail(Code::not_found, at.number());  // nothing is delivered twice
    return walk_of_node(*channel_, at, noticed);
  });
}

Result<std::unique_ptr<PipelineImpl>> HashMapImpl::open_pipeline(std::uint32_t in_flight) {
  if (object_.own() != nullptr) return open_own_pipeline(channel_, object_, in_flight);
  if (channel_->is_copy()) return fail(Code::forked);
  return at_node([&](const Object& at) { return open_pipeline_of_node(*channel_, at, in_flight); });
}

Result<HashMapStats> HashMapImpl::stats() {
  const auto reply =
      at_node([&](const Object& at) { return at.ask(hash_calls::Stats{at.number()}); });
  if (!reply) return std::unexpected(reply.error());
  const hash::HashNumbers& now = reply->numbers;
  return HashMapStats{now.items,        now.memory_bytes,  now.segments, now.record_bytes,
                      now.long_bytes,   now.retired_bytes, now.splits,   now.snapshots,
                      now.read_version, now.write_version};
}

Result<std::vector<std::string>> HashMapImpl::audit() {
  if (object_.own() == nullptr) return fail(Code::unsupported);
  hash::HashMap& map = *object_.own();
  if (map.is_dropped()) return fail(Code::not_found, map.id());
  map.trim();
  return hash::audit(map).wrong;
}

Result<std::shared_ptr<HashMapImpl>> create_hash_map(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name,
    const HashMapOptions& options) {
  if (!wire::is_group_of(options.group, options.versions)) return fail(Code::invalid_argument);
  hash::HashShape shape{};
  shape.partitions = options.partitions;
  shape.versions = options.versions ? 1 : 0;
  shape.group_bytes = static_cast<std::uint8_t>(options.group.size());
  shape.snapshot_bytes_max = options.snapshot_bytes_max;
  return reach_hash(
      channel, hash_calls::Create{name, shape, wire::number_of(options.durability), options.group});
}

Result<std::shared_ptr<HashMapImpl>> open_hash_map(const std::shared_ptr<channel::Channel>& channel,
                                                   std::string_view name) {
  return reach_hash(channel, hash_calls::Open{name});
}

Result<std::vector<HashMapDescription>> list_hash_maps(channel::Channel& channel) {
  auto listed = channel::list(channel, ObjectKind::hash);
  if (!listed) return std::unexpected(listed.error());
  std::vector<HashMapDescription> all;
  for (channel::ListedObject& object : *listed) {
    hash::HashShape shape{};
    if (object.description.size() < sizeof shape) return fail(Code::corrupt);
    std::memcpy(&shape, object.description.data(), sizeof shape);
    const std::string_view group = std::string_view(object.description).substr(sizeof shape);
    if (hash_calls::fault_of_shape(shape, group)) return fail(Code::corrupt);
    all.push_back({std::move(object.name), public_options(shape, group), object.numbers.entries,
                   object.numbers.memory_bytes, object.durability});
  }
  return all;
}

}  // namespace espalier::client
