// SPDX-License-Identifier: Apache-2.0
// What stands behind HashMap: one object, reached by a channel. What a call does is the same
// function here and at a node (kinds/hash/execute.hpp); reads copy the value once, from the map or
// out of the message. Where another node has come, the next head of a chain or one that was started
// again, the map is opened anew by its name; walks and pipelines end with the node that they began
// at.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "channel/interface.hpp"
#include "channel/reached_object.hpp"
#include "channel/rings/pipeline_impl.hpp"
#include "espalier/hash_map.hpp"

namespace espalier::hash {
class HashMap;
}

namespace espalier::client {

class RemoteSessions;

/// One hash map. Errors as in HashMap.
class HashMapImpl final : public Interface {
 public:
  using Object = channel::Reached<hash::HashMap>;

  HashMapImpl(std::shared_ptr<channel::Channel> channel, Object object,
              const HashMapOptions& options_in);
  static HashMapImpl& of(const HashMap& map) { return *map.impl_; }
  static HashMap handle(std::shared_ptr<HashMapImpl> impl) { return HashMap(std::move(impl)); }

  [[nodiscard]] const std::string& name() const { return object_.name(); }

  /// The version of what was found, whose value is in `value`; none: it is as it was. Versions are
  /// of one run of one node: where another has come, a map may have begun with 1 again.
  Result<std::optional<Version>> get(std::string_view key, std::string& value);
  template <class Request>
  Result<Written> write(std::string_view key, std::string_view value);
  Result<Written> erase(std::string_view key);
  /// A condition on a version fails where another node has come meanwhile.
  Result<Written> compare_and_set(std::string_view key, const Condition& condition,
                                  std::optional<std::string_view> desired);
  Result<Written> modify(
      std::string_view key,
      const std::function<std::optional<std::string>(std::optional<std::string_view>)>& change);
  Result<std::uint64_t> add(std::string_view key, std::uint64_t amount);
  Result<std::uint64_t> walk(const ItemSink& sink);
  /// Requires: 1 to 256 in flight.
  Result<std::unique_ptr<PipelineImpl>> open_pipeline(std::uint32_t in_flight);
  Result<HashMapStats> stats();
  Result<std::vector<std::string>> audit();

  const HashMapOptions options;

 private:
  [[nodiscard]] const Object& object() const { return *now_.load(std::memory_order_acquire); }
  /// Does something with the map, and again where its node does not know it and another one has a
  /// map of that name and of its options: what was refused so was not done. Errors: besides those
  /// of what is done, those of open_again().
  template <class Act>
  auto at_node(const Act& act) -> decltype(act(std::declval<const Object&>()));
  /// `from`: where the value was read.
  Result<std::optional<Version>> get_from(std::string_view key, std::string& value,
                                          const Object*& from);
  /// `only`: at another one the condition fails; null: at any.
  Result<Written> compare_and_set_at(const Object* only, std::string_view key,
                                     const Condition& condition,
                                     std::optional<std::string_view> desired);
  /// Opens it at a node that has come since. False: there is none, or it has no such map. Errors:
  /// whatever else keeps it from being opened, as connection_lost, not_permitted, out_of_memory.
  /// Requires: it is no object of this process.
  [[nodiscard]] Result<bool> open_again(const Object& before);

  const std::shared_ptr<channel::Channel> channel_;  // before the object, whose memory it keeps
  const Object object_;                              // as it was opened first
  std::mutex mutex_;                                 // guards all changes of these two
  std::deque<Object> later_;                         // as it was opened since
  std::atomic<const Object*> now_;                   // one of them; they stay
  RemoteSessions* const alone_;  // of channel_, where gets are this process's own; else null
};

// The hash maps of a store. Returned ones are never null. Errors: see Store.
Result<std::shared_ptr<HashMapImpl>> create_hash_map(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name,
    const HashMapOptions& options);
Result<std::shared_ptr<HashMapImpl>> open_hash_map(const std::shared_ptr<channel::Channel>& channel,
                                                   std::string_view name);
Result<std::vector<HashMapDescription>> list_hash_maps(channel::Channel& channel);

}  // namespace espalier::client
