// SPDX-License-Identifier: Apache-2.0
// Definitions of one_sided_pipeline.hpp, for the kinds' instantiations.
#pragma once

#include <algorithm>
#include <new>
#include <utility>

#include "channel/no_memory.hpp"
#include "channel/one_sided/one_sided_pipeline.hpp"

namespace espalier::client {

template <class Readers>
OneSidedPipeline<Readers>::OneSidedPipeline(std::shared_ptr<RemoteSessions> sessions,
                                            std::unique_ptr<ThreadRings> rings,
                                            std::unique_ptr<ThreadRings> control,
                                            const Scope& scope, std::uint32_t in_flight)
    : sessions_(std::move(sessions)),
      rings_(std::move(rings)),
      control_rings_(std::move(control)),
      scope_(scope),
      requests_(std::make_unique<RemoteRequests>(*rings_, in_flight)),
      control_(std::make_unique<RemoteRequests>(*control_rings_, 1)),
      readers_(in_flight, sessions_->walks()),
      places_(in_flight) {
  for (std::uint32_t i = in_flight; i != 0; --i) free_.push_back(i - 1);
}

template <class Readers>
OneSidedPipeline<Readers>::~OneSidedPipeline() {
  while (pending() != 0) poll();
  publish();
  requests_.reset();
  control_.reset();
  sessions_->release(std::move(rings_));
  sessions_->release(std::move(control_rings_));
}

template <class Readers>
void OneSidedPipeline<Readers>::publish() {
  const tree::WalkTraffic now = traffic();
  sessions_->traffic().add(published_, now);
  published_ = now;
}

template <class Readers>
void OneSidedPipeline<Readers>::submit(std::span<const Request> requests, Handler& handler) {
  while (!requests.empty()) {
    const auto other =
        std::ranges::find_if(requests, [](Op op) { return !Readers::serves(op); }, &Request::op);
    for (const Request& read : std::span(requests.begin(), other)) enqueue({&read, &handler});
    const auto next = std::find_if(
        other, requests.end(), [](const Request& request) { return Readers::serves(request.op); });
    send(std::span(other, next), handler);
    requests = {next, requests.end()};
  }
  start();
}

// Gives free places to queued reads while there is a reader; without one, the rings answer.
template <class Readers>
void OneSidedPipeline<Readers>::start() {
  while (!queue_.empty() && !free_.empty() && !broken_) {
    const Queued queued = queue_.front();
    queue_.pop_front();
    if (reader_ != nullptr || open_reader(queued)) give_place(queued);
  }
}

// False: the read was refused, or sent through the rings.
template <class Readers>
bool OneSidedPipeline<Readers>::open_reader(const Queued& queued) {
  const auto opened = or_out_of_memory(
      [&] { return readers_.open(*control_, control_rings_->connection(), scope_.map); });
  if (opened) {
    reader_ = *opened;
  } else if (Readers::kAskedForAlone && opened.error().code == Code::unsupported) {
    refuse(queued, opened.error());
  } else {
    go_by_rings(queued);
  }
  return opened.has_value();
}

template <class Readers>
void OneSidedPipeline<Readers>::give_place(const Queued& queued) {
  const std::uint32_t number = free_.back();
  free_.pop_back();
  ++reading_;
  places_[number].begin(*this, queued, number);
  try {
    return reader_->submit({queued.request, 1}, places_[number]);
  } catch (const std::bad_alloc&) {  // it was not accepted
    free_.push_back(number);
    --reading_;
  }
  refuse(queued, {Code::out_of_memory, 0, 0});
}

template <class Readers>
void OneSidedPipeline<Readers>::enqueue(const Queued& queued) {
  try {
    return queue_.push_back(queued);
  } catch (const std::bad_alloc&) {
  }
  refuse(queued, {Code::out_of_memory, 0, 0});
}

// A READ-only pipeline refuses what the node or the object does not permit: the rings are no
// fallback.
template <class Readers>
void OneSidedPipeline<Readers>::refuse(const Queued& queued, const Error& error) {
  Completion refused;
  refused.tag = queued.request->tag;
  refused.op = queued.request->op;
  refused.error = error;
  ++completed_;
  queued.handler->done(refused);
}

template <class Readers>
void OneSidedPipeline<Readers>::go_by_rings(const Queued& queued) {
  ++by_rings_;
  send({queued.request, 1}, *queued.handler);
}

template <class Readers>
void OneSidedPipeline<Readers>::send(std::span<const Request> requests, Handler& handler) {
  if (requests_->try_submit(requests, handler, scope_)) return;
  for (const Request& each : requests) refuse({&each, &handler}, {Code::out_of_memory, 0, 0});
}

template <class Readers>
void OneSidedPipeline<Readers>::Place::begin(OneSidedPipeline& owner, const Queued& queued,
                                             std::uint32_t number) {
  owner_ = &owner;
  queued_ = queued;
  number_ = number;
  delivered_ = false;
}

template <class Readers>
void OneSidedPipeline<Readers>::Place::done(const Completion& completion) {
  auto& owner = *owner_;
  const Queued queued = queued_;
  const Code code = completion.ok ? Code::invalid : completion.error.code;
  const bool lost = code == Code::connection_lost || code == Code::not_found;
  owner.free_.push_back(number_);
  --owner.reading_;
  if (lost) owner.broken_ = true;
  if ((lost || code == Code::contended) && !delivered_) {
    if (!lost || queued.again) return owner.go_by_rings(queued);
    return owner.enqueue({queued.request, queued.handler, true});
  }
  ++owner.completed_;
  queued.handler->done(completion);
}

template <class Readers>
bool OneSidedPipeline<Readers>::Place::items(std::uint64_t, std::span<const Item> items) {
  delivered_ = true;
  return queued_.handler->items(queued_.request->tag, items);
}

// Takes completions, advances walks, and renews leases.
template <class Readers>
void OneSidedPipeline<Readers>::walk() {
  if (reader_ == nullptr) return;
  reader_->poll();
  readers_.renew(*control_, reader_->lease());
  if (reader_->lease().ended()) reader_->fail();
  const std::uint64_t trips = reader_->traffic().round_trips;
  quiet_ = std::exchange(trips_, trips) == trips ? quiet_ + 1 : 0;
  if (broken_ && reader_->pending() == 0) {
    reader_ = nullptr;
    readers_.close();
    broken_ = false;
    trips_ = 0;
  }
}

template <class Readers>
std::size_t OneSidedPipeline<Readers>::advance() {
  walk();
  start();
  if (requests_->pending() != 0) requests_->advance();
  if (pending() == 0) publish();
  return pending();
}

template <class Readers>
std::size_t OneSidedPipeline<Readers>::poll() {
  const auto done = [this, before = completed_, by_rings = requests_->completed()] {
    return completed_ != before || requests_->completed() != by_rings;
  };
  while (!done() && advance() != 0 && !done()) {
    if (reading_ == 0 && queue_.empty()) {
      requests_->poll();
    } else if (quiet_ > kReadSpins && requests_->pending() == 0) {
      readers_.wait();
    }
  }
  if (pending() == 0) publish();  // the last one may have come by the rings
  return pending();
}

template <class Readers>
void OneSidedPipeline<Readers>::run(std::span<const Request> requests, Handler& handler) {
  submit(requests, handler);
  while (pending() != 0) poll();
}

}  // namespace espalier::client
