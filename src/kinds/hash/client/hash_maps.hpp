// SPDX-License-Identifier: Apache-2.0
// Implementation behind HashMap: one object, reached by a channel. A call runs the same function
// locally and at a node (kinds/hash/execute.hpp); reads copy the value once, from the map or out of
// the message. If another node replaces the first, i.e. the next head of a chain or one that was
// restarted, the map is reopened by its name; walks and pipelines end with the node at which they
// began.
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

  /// Returns the version of the item, and its value in `value`; none: `value` is unchanged.
  /// Versions belong to one run of one node: after a replacement, a map may have restarted at 1.
  Result<std::optional<Version>> get(std::string_view key, std::string& value);
  template <class Request>
  Result<Written> write(std::string_view key, std::string_view value);
  Result<Written> erase(std::string_view key);
  /// A condition on a version fails if the node was replaced meanwhile.
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
  /// Runs `act` on the map, and again if its node does not know the map and a replacement has one
  /// of that name and those options: the refused call had no effect. Errors: besides those of
  /// `act`, those of open_again().
  template <class Act>
  auto at_node(const Act& act) -> decltype(act(std::declval<const Object&>()));
  /// `from`: where the value was read.
  Result<std::optional<Version>> get_from(std::string_view key, std::string& value,
                                          const Object*& from);
  /// `only`: the condition fails at any other object; null: at none.
  Result<Written> compare_and_set_at(const Object* only, std::string_view key,
                                     const Condition& condition,
                                     std::optional<std::string_view> desired);
  /// Reopens it at a replacement node. False: there is none, or it has no such map. Errors: any
  /// other reason that prevents reopening, as connection_lost, not_permitted, out_of_memory.
  /// Requires: the object is not of this process.
  [[nodiscard]] Result<bool> open_again(const Object& before);

  const std::shared_ptr<channel::Channel> channel_;  // before the object, whose memory it keeps
  const Object object_;                              // as it was opened first
  std::mutex mutex_;                                 // guards all changes of these two
  std::deque<Object> later_;                         // as it was opened since
  std::atomic<const Object*> now_;                   // one of them; they stay
  RemoteSessions* const alone_;  // of channel_, if gets are one-sided; else null
};

// The hash maps of a store. Returned ones are never null. Errors: see Store.
Result<std::shared_ptr<HashMapImpl>> create_hash_map(
    const std::shared_ptr<channel::Channel>& channel, std::string_view name,
    const HashMapOptions& options);
Result<std::shared_ptr<HashMapImpl>> open_hash_map(const std::shared_ptr<channel::Channel>& channel,
                                                   std::string_view name);
Result<std::vector<HashMapDescription>> list_hash_maps(channel::Channel& channel);

}  // namespace espalier::client
