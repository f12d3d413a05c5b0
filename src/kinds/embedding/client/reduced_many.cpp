// SPDX-License-Identifier: Apache-2.0
// Many reductions of one table of a node, several of them on their way at a time: so the node has
// the rows of all of these brought near together, and one wait is that of several.
//
// What a node refuses because the table has another name now, or nothing has it, is asked for once
// more, alone; so is what is too long for one message.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "channel/rings/remote_sessions.hpp"
#include "kinds/embedding/client/ask_node.hpp"
#include "kinds/embedding/client/embedding_tables.hpp"

namespace espalier::client {
namespace {

constexpr std::uint32_t kInFlightMax = 256;
/// Of ids, offsets, weights and vector: more go alone, for a request ring has 256 KiB.
constexpr std::size_t kBytesMax = std::size_t{16} << 10;

embedding::ReductionWork work_of(const ReduceRequest& request) {
  return {request.reduction, request.bags, request.vector};
}

std::size_t bytes_of(const ReduceRequest& request) {
  return request.bags.ids.size_bytes() + request.bags.offsets.size_bytes() +
         request.bags.weights.size_bytes() + request.vector.size_bytes();
}

}  // namespace

class ManyReductions {
 public:
  ManyReductions(EmbeddingTableImpl& table, std::span<ReduceRequest> requests,
                 std::uint32_t in_flight)
      : table_(table), requests_(requests), done_(requests.size()), of_ticket_(in_flight) {
    for (std::uint32_t ticket = in_flight; ticket != 0; --ticket) free_.push_back(ticket - 1);
  }

  void run() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      requests_[i].error = fault_of(requests_[i]);
      done_[i] = requests_[i].error.error != Error{};
    }
    if (RemoteSessions* const sessions = sessions_to_ask()) ask_together(*sessions);
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (done_[i]) continue;
      auto done = table_.reduce(work_of(requests_[i]), requests_[i].results);
      requests_[i].error = done ? TableError() : std::move(done.error());
    }
  }

 private:
  [[nodiscard]] TableError fault_of(const ReduceRequest& request) const {
    const Error wrong{Code::invalid_argument, 0, 0};
    auto fault = embedding::fault_of_work(work_of(request), table_.options.dimension);
    if (fault) return {wrong, *std::move(fault)};
    if (request.results.size() !=
        table_.floats_of(request.reduction, request.bags.offsets.size())) {
      return {wrong, "the results have no room for as many floats as the bags come to"};
    }
    return {};
  }

  /// Null: they are done one by one.
  [[nodiscard]] RemoteSessions* sessions_to_ask() const {
    if (table_.alone_ != nullptr || requests_.size() < 2) return nullptr;
    return dynamic_cast<RemoteSessions*>(table_.channel_.get());
  }

  void ask_together(RemoteSessions& sessions) {
    const auto at = table_.now_.use();
    const auto session = RemoteLease::take_at(sessions, at->object.node());
    if (!session) return;  // the second attempt says why
    RemoteRequests& lane = (*session)->requests;
    while (send_some(lane, *at) || busy_ != 0) {
      bool took = false;
      while (busy_ != 0) {
        const auto answer = lane.take_alone_in_place();
        if (!answer) break;
        took = true;
        take(*answer);
      }
      if (!took && busy_ != 0 && !lane.wait_alone())
        return lose_all((*session)->rings->lost_error());
    }
    lane.rest();
  }

  /// Sends what there is room for, when half of the places are free, so that both sides work in
  /// batches. Returns whether there are others to send.
  bool send_some(RemoteRequests& lane, const OpenedEmbedding& at) {
    if (busy_ > of_ticket_.size() / 2) return next_ < requests_.size();
    for (; next_ < requests_.size() && !free_.empty(); ++next_) {
      const ReduceRequest& request = requests_[next_];
      const bool fits = bytes_of(request) <= kBytesMax && request.results.size_bytes() <= kBytesMax;
      if (done_[next_] || !fits || request.results.empty()) continue;
      embedding_calls::Reduce asked = reduce_request(work_of(request));
      asked.table = at.object.number();
      asked.named = at.named();
      const wire::RequestMessage<embedding_calls::Reduce> message(asked);
      const std::uint32_t ticket = free_.back();
      if (!lane.send_alone(message.get(), ticket, true)) {
        // With nothing on its way the connection is lost, or others have all the room.
        if (busy_ == 0) next_ = requests_.size();
        break;
      }
      free_.pop_back();
      of_ticket_[ticket] = next_;
      ++busy_;
    }
    lane.ring_alone();
    return next_ < requests_.size();
  }

  void take(const Incoming& answer) {
    const std::uint32_t ticket = answer.header.tag;
    if (ticket >= of_ticket_.size() || !of_ticket_[ticket]) return;  // no request waits for it
    const std::size_t number = *std::exchange(of_ticket_[ticket], std::nullopt);
    ReduceRequest& request = requests_[number];
    free_.push_back(ticket);
    --busy_;
    if (answer.header.code == static_cast<std::uint16_t>(Code::not_found)) return;
    done_[number] = true;
    if (answer.header.code != 0) {
      Refusal refusal = RemoteRequests::refusal_of(answer);
      request.error = {refusal.error, std::move(refusal.words)};
      return;
    }
    const auto reply = wire::read_reply<embedding_calls::Reduced>(answer.header, answer.payload);
    if (!reply || reply->results.size() != request.results.size_bytes()) {
      request.error = TableError(Error{Code::corrupt, 0, 0});
      return;
    }
    std::memcpy(request.results.data(), reply->results.data(), reply->results.size());
    request.error = {};
  }

  void lose_all(const Error& error) {
    for (auto& ticket : of_ticket_) {
      if (!ticket) continue;
      requests_[*ticket].error = TableError(error);
      done_[*ticket] = true;
    }
  }

  EmbeddingTableImpl& table_;
  const std::span<ReduceRequest> requests_;
  std::vector<bool> done_;                             // or refused
  std::vector<std::optional<std::size_t>> of_ticket_;  // which request waits for its answer
  std::vector<std::uint32_t> free_;
  std::size_t next_ = 0;
  std::size_t busy_ = 0;
};

TableResult<void> EmbeddingTableImpl::reduce_many(std::span<ReduceRequest> requests,
                                                  std::uint32_t in_flight) {
  if (in_flight == 0 || in_flight > kInFlightMax) {
    return std::unexpected(TableError(Error{Code::invalid_argument, 0, in_flight},
                                      "1 to 256 requests may be on their way"));
  }
  ManyReductions(*this, requests, in_flight).run();
  return {};
}

}  // namespace espalier::client
