// SPDX-License-Identifier: Apache-2.0
#include "kinds/program/running_call.hpp"

#include <new>
#include <utility>

#include "base/assert.hpp"

namespace espalier {

static_assert(static_cast<unsigned>(OffloadRight::read) ==
              static_cast<unsigned>(wire::Right::read));
static_assert(static_cast<unsigned>(OffloadRight::admin) ==
              static_cast<unsigned>(wire::Right::admin));

std::string_view OffloadContext::request() const { return running_.request_; }

OwnObject& OffloadContext::object_of_any() const {
  ESPALIER_ASSERT(running_.object_ != nullptr);
  return running_.object_->own();
}

Store& OffloadContext::store() {
  if (running_.store_ == nullptr) running_.store_ = running_.source_.store();
  return *running_.store_;
}

const std::string& OffloadContext::client() const { return running_.caller_.name; }

bool OffloadContext::may_use(std::string_view object_name) const {
  return object_name.starts_with(running_.caller_.prefix);
}

bool OffloadContext::may(OffloadRight right) const {
  return wire::has_right(wire::rights_of(running_.caller_.role), static_cast<wire::Right>(right));
}

OffloadStep OffloadContext::answer(std::string_view reply) {
  running_.reply_ = reply;
  return OffloadStep(OffloadStep::How::answered);
}

OffloadStep OffloadContext::fail(const Error& error, std::string_view words) {
  running_.error_.emplace(error, std::string(words));
  return OffloadStep(OffloadStep::How::failed);
}

namespace program {

bool RunningCall::step() {
  error_.reset();
  try {
    return end(offload_.step(context_));
  } catch (const std::bad_alloc&) {
    return fail({{Code::out_of_memory, 0, 0}});
  } catch (...) {
    return fail(own_.caught(row().name, row().number));
  }
}

// A handler is the program's code: a reply that is too long, and an error without a code, are
// reported as such, so that no client takes them for something else.
bool RunningCall::end(OffloadStep step) {
  switch (step.how_) {
    case OffloadStep::How::again: return false;
    case OffloadStep::How::failed:
      if (!error_ || error_->error.code == Code::invalid) {
        return fail({{Code::corrupt, 0, row().number}, "the call failed and did not say why"});
      }
      return true;
    case OffloadStep::How::answered: break;
  }
  error_.reset();
  if (reply_.size() > row().reply_bytes_max) {
    return fail({{Code::corrupt, 0, row().number}, "the reply is longer than the call's row says"});
  }
  return true;
}

bool RunningCall::fail(TableError error) {
  error_ = std::move(error);
  return true;
}

}  // namespace program
}  // namespace espalier
