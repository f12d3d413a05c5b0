// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/one_sided_pipeline.hpp"

#include <algorithm>
#include <utility>

#include "kinds/map/client/one_sided_caller.hpp"

namespace espalier::client {

OneSidedPipeline::OneSidedPipeline(std::unique_ptr<ThreadRings> rings,
                                   std::unique_ptr<ThreadRings> control, GiveBack give_back,
                                   const Scope& scope, std::uint32_t in_flight,
                                   const WalkOptions& options)
    : rings_(std::move(rings)),
      control_rings_(std::move(control)),
      give_back_(std::move(give_back)),
      scope_(scope),
      requests_(std::make_unique<RemoteRequests>(*rings_, in_flight)),
      control_(std::make_unique<RemoteRequests>(*control_rings_, 1)),
      maps_(in_flight, options),
      places_(in_flight) {
  for (std::uint32_t i = in_flight; i != 0; --i) free_.push_back(i - 1);
}

OneSidedPipeline::~OneSidedPipeline() {
  while (pending() != 0) poll();
  requests_.reset();
  control_.reset();
  give_back_(std::move(rings_), maps_.traffic());
  give_back_(std::move(control_rings_), {});
}

void OneSidedPipeline::submit(std::span<const Request> requests, Handler& handler) {
  while (!requests.empty()) {
    const auto other = std::ranges::find_if(
        requests, [](Op op) { return !OneSidedCaller::serves(op); }, &Request::op);
    for (const Request& read : std::span(requests.begin(), other)) {
      queue_.push_back({&read, &handler});
    }
    const auto next = std::find_if(other, requests.end(), [](const Request& request) {
      return OneSidedCaller::serves(request.op);
    });
    requests_->submit(std::span(other, next), handler, scope_);
    requests = {next, requests.end()};
  }
  start();
}

// Gives places to what waits, as long as there is a reader; without one, the rings answer.
void OneSidedPipeline::start() {
  while (!queue_.empty() && !free_.empty() && !broken_) {
    const Queued queued = queue_.front();
    if (reader_ == nullptr) {
      const auto opened = maps_.open(*control_, control_rings_->connection(), scope_.map);
      if (!opened) {
        queue_.pop_front();
        if (opened.error().code == Code::unsupported) {
          refuse(queued, opened.error());
        } else {
          go_by_rings(queued);
        }
        continue;
      }
      reader_ = *opened;
    }
    queue_.pop_front();
    const std::uint32_t number = free_.back();
    free_.pop_back();
    ++reading_;
    places_[number].begin(*this, queued, number);
    reader_->submit({queued.request, 1}, places_[number]);
  }
}

// What the node or the map does not allow is no matter for the rings: it was asked for.
void OneSidedPipeline::refuse(const Queued& queued, const Error& error) {
  Completion refused;
  refused.tag = queued.request->tag;
  refused.op = queued.request->op;
  refused.error = error;
  ++completed_;
  queued.handler->done(refused);
}

void OneSidedPipeline::go_by_rings(const Queued& queued) {
  ++fallbacks_;
  requests_->submit({queued.request, 1}, *queued.handler, scope_);
}

void OneSidedPipeline::Place::begin(OneSidedPipeline& owner, const Queued& queued,
                                    std::uint32_t number) {
  owner_ = &owner;
  queued_ = queued;
  number_ = number;
  delivered_ = false;
}

void OneSidedPipeline::Place::done(const Completion& completion) {
  OneSidedPipeline& owner = *owner_;
  const Queued queued = queued_;
  const Code code = completion.ok ? Code::invalid : completion.error.code;
  const bool lost = code == Code::connection_lost || code == Code::not_found;
  owner.free_.push_back(number_);
  --owner.reading_;
  if (lost) owner.broken_ = true;
  if ((lost || code == Code::contended) && !delivered_) {
    if (!lost || queued.again) return owner.go_by_rings(queued);
    owner.queue_.push_back({queued.request, queued.handler, true});
    return;
  }
  ++owner.completed_;
  queued.handler->done(completion);
}

bool OneSidedPipeline::Place::items(std::uint64_t, std::span<const Item> items) {
  delivered_ = true;
  return queued_.handler->items(queued_.request->tag, items);
}

// Takes what has come, and lets the walks go on.
void OneSidedPipeline::walk() {
  if (reader_ == nullptr) return;
  reader_->poll();
  maps_.renew(*control_, reader_->lease());
  if (reader_->lease().ended()) reader_->fail();
  const std::uint64_t trips = reader_->traffic().round_trips;
  quiet_ = std::exchange(trips_, trips) == trips ? quiet_ + 1 : 0;
  if (broken_ && reader_->pending() == 0) {
    reader_ = nullptr;
    maps_.close();
    broken_ = false;
    trips_ = 0;
  }
}

std::size_t OneSidedPipeline::advance() {
  walk();
  start();
  if (requests_->pending() != 0) requests_->advance();
  return pending();
}

std::size_t OneSidedPipeline::poll() {
  const auto done = [this, before = completed_, by_rings = requests_->completed()] {
    return completed_ != before || requests_->completed() != by_rings;
  };
  while (!done() && advance() != 0 && !done()) {
    if (reading_ == 0 && queue_.empty()) {
      requests_->poll();
    } else if (quiet_ > kReadSpins && requests_->pending() == 0) {
      maps_.wait();
    }
  }
  return pending();
}

void OneSidedPipeline::run(std::span<const Request> requests, Handler& handler) {
  submit(requests, handler);
  while (pending() != 0) poll();
}

}  // namespace espalier::client
