// SPDX-License-Identifier: Apache-2.0
// Espalier's map, in this process.
#include <optional>

#include "bench/feed_subscribers.hpp"
#include "bench/map_session.hpp"

namespace espalier::bench {
namespace {

class EmbeddedTarget : public Target {
 public:
  explicit EmbeddedTarget(const TargetOptions& options)
      : options_(options),
        store_(value_or_throw(Store::open(), "cannot open a store")),
        map_(value_or_throw(store_.create_map("bench", map_options_of(options)),
                            "cannot create a map")) {
    if (options.subscribers != 0) subscribers_.emplace(map_, options.subscribers);
  }

  std::unique_ptr<TargetSession> open_session() override {
    return open_session_with(options_.in_flight);
  }
  std::unique_ptr<TargetSession> open_session_with(std::uint32_t in_flight) override {
    return open_map_session(map_, in_flight);
  }
  void trim() override { store_.trim(); }
  Contents contents() override { return contents_of(map_); }

  [[nodiscard]] std::string settings() const override {
    const std::string calls = options_.in_flight == 1
                                  ? "synchronous calls"
                                  : fmt::format("{} in flight on each thread", options_.in_flight);
    return fmt::format("{}, versions {}", calls, options_.versions ? "on" : "off");
  }
  std::optional<FeedNews> end_subscribers() override {
    return subscribers_ ? std::optional(subscribers_->end()) : std::nullopt;
  }
  [[nodiscard]] std::string pages() const override { return store_.page_message(); }

 private:
  TargetOptions options_;
  Store store_;
  Map map_;
  std::optional<FeedSubscribers> subscribers_;
};

}  // namespace

std::unique_ptr<Target> make_embedded_target(const TargetOptions& options) {
  return std::make_unique<EmbeddedTarget>(options);
}

}  // namespace espalier::bench
