// SPDX-License-Identifier: Apache-2.0
#include "catalog/object.hpp"

#include <utility>

#include "base/assert.hpp"
#include "base/durable_mark.hpp"
#include "catalog/redo_sink.hpp"
#include "catalog/transaction_part.hpp"

namespace espalier::catalog {

Object::Object() = default;
Object::~Object() = default;

void Object::set_renamed(std::string&, std::uint32_t) noexcept { ESPALIER_ASSERT(false); }

Result<std::unique_ptr<TransactionPart>> Object::transaction_part(std::span<const TransactionStep>,
                                                                  TransactionPlaces&) {
  return fail(Code::unsupported);
}

void Object::record_to(RedoSink* sink) {
  redo_ = sink;
  async_ = false;
}

bool Object::promises_async(const RedoSink* sink) const {
  return sink != nullptr && own_.value_or(sink->promise().durability) == Durability::async;
}

Durability Object::durability() const {
  if (redo_ == nullptr || !redo_->mark().is_of_records()) return Durability::none;
  return async_ ? Durability::async : Durability::sync;
}

}  // namespace espalier::catalog
