// SPDX-License-Identifier: Apache-2.0
#include "client/one_sided_caller.hpp"

#include <utility>

namespace espalier::client {
namespace {

constexpr int kTries = 2;  // the second with a new session's key and lease

/// Hands on what a reader tells, but for failures that the rings may do better.
class Forward final : public Handler {
 public:
  explicit Forward(Handler& to) : to_(to) {}
  void done(const Completion& completion) override {
    const Code code = completion.error.code;
    const bool lost = code == Code::contended || code == Code::connection_lost;
    failed = !completion.ok && (lost || code == Code::not_found) && completion.items == 0;
    if (!failed) to_.done(completion);
  }
  bool items(std::uint64_t tag, std::span<const Item> items) override {
    return to_.items(tag, items);
  }
  bool failed = false;

 private:
  Handler& to_;
};

}  // namespace

bool OneSidedCaller::serves(Op op) {
  switch (op) {
    case Op::get:
    case Op::floor:
    case Op::scan:
    case Op::scan_reverse:
    case Op::scan_floor: return true;
    default: return false;
  }
}

Result<bool> OneSidedCaller::run(RemoteRequests& requests, NodeConnection& connection,
                                 std::uint32_t map, const Request& request, Handler& handler) {
  Forward forward(handler);
  for (int i = 0; i < kTries; ++i) {
    const auto opened = maps_.open(requests, connection, map);
    // What is wrong with the connection, the rings will tell.
    if (!opened && opened.error().code == Code::connection_lost) return false;
    if (!opened) return std::unexpected(opened.error());
    place::OneSidedReader& reader = **opened;
    reader.submit({&request, 1}, forward);
    std::uint32_t quiet = 0;  // looks since the walk last asked for something
    for (std::uint64_t trips = 0; reader.poll() != 0; ++quiet) {
      if (std::exchange(trips, reader.traffic().round_trips) != reader.traffic().round_trips)
        quiet = 0;
      maps_.renew(requests, reader.lease());
      if (reader.lease().ended()) reader.fail();
      if (quiet > OneSidedMaps::kSpins) maps_.wait();
    }
    if (!forward.failed) return true;
    maps_.close();
  }
  ++fallbacks_;
  return false;
}

}  // namespace espalier::client
