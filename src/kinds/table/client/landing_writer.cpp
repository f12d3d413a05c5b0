// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/landing_writer.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "channel/rings/typed_call.hpp"

namespace espalier::client {
namespace {

constexpr std::size_t kWriteBytes = std::size_t{256} << 10;  // of one WRITE
constexpr std::uint64_t kLandingPauseNs = 1'000'000'000;     // after a failure
constexpr std::uint64_t kLandingNapNs = 1'000'000;
constexpr std::uint64_t kGiveUpNs = 10'000'000'000;  // without a completion
constexpr int kSpins = 2000;

}  // namespace

bool LandingWriter::open(RemoteRequests& requests, NodeConnection& connection) {
  if (link_ && link_->pair().state() == fabric::QueuePair::State::connected) return true;
  link_.reset();
  const std::uint64_t now = base::monotonic_ns();
  if (now < not_before_ns_) return false;
  not_before_ns_ = now + kLandingPauseNs;
  auto link = connection.open_beside(wire::LinkWay::writes);
  if (!link) return false;
  // The window of a pair that failed is as good as another.
  if (grant_.window == 0) {
    const auto opened = ask(requests, table_calls::OpenWindow{kWindowBytes});
    if (!opened) return false;
    grant_ = opened->grant;
  }
  link_ = std::move(*link);
  return grant_.window != 0;
}

// All are in place when the last one's completion has come, for they take effect in order.
bool LandingWriter::write(std::span<const std::byte> bytes) {
  std::size_t at = 0;
  std::uint64_t ended = 0;
  std::uint64_t posted = 0;
  std::uint64_t heard_ns = base::monotonic_ns();
  int spins = 0;
  while (at < bytes.size() || ended < posted) {
    if (at < bytes.size()) {
      const auto some = bytes.subspan(at, std::min(kWriteBytes, bytes.size() - at));
      const auto request = fabric::WorkRequest::write(posted, some, grant_.key, grant_.base + at);
      if (link_->pair().post(request).taken == 1) {
        ++posted;
        at += some.size();
        continue;
      }
    }
    fabric::Completion completions[16];
    const std::size_t count = link_->completions().poll(completions);
    for (std::size_t i = 0; i < count; ++i) {
      if (completions[i].status != fabric::Status::success) return false;
    }
    ended += count;
    const std::uint64_t now = base::monotonic_ns();
    if (count != 0) heard_ns = now;
    if (now - heard_ns > kGiveUpNs) return false;
    if (count == 0 && ++spins > kSpins) link_->endpoint().wait(kLandingNapNs);
  }
  return true;
}

bool LandingWriter::prepare(RemoteRequests& requests, NodeConnection& connection,
                            std::size_t bytes) {
  if (bytes < kWorthBytes || bytes > kWindowBytes) return false;
  return open(requests, connection) && bytes <= grant_.bytes;
}

std::optional<std::expected<table_calls::Appended, Refusal>> LandingWriter::append(
    RemoteRequests& requests, NodeConnection& connection, std::uint32_t table,
    std::span<const std::byte> rows, std::string_view reservation) {
  if (!prepare(requests, connection, rows.size())) return std::nullopt;
  if (!write(rows)) {
    // What is still on its way may land in the window later, so it is not used again.
    static_cast<void>(ask(requests, table_calls::CloseWindow{grant_.window}));
    link_.reset();
    grant_ = {};
    return std::nullopt;
  }
  Reply answer;
  return ask_in_words(
      requests, table_calls::Commit{table, reservation, {grant_.window, 0, rows.size()}}, answer);
}

}  // namespace espalier::client
