// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/execute.hpp"

#include <utility>

namespace espalier::hash_calls {

using hash::HashMap;
using hash::HashThread;
using hash::WriteOp;

namespace {

Begun<ItemWritten> begin_write(HashMap& of, HashThread& thread, WriteOp op, std::string_view key,
                               std::string_view value, hash::StagedPair* staged = nullptr,
                               const Condition& condition = {}) {
  if (of.is_dropped()) return Begun<ItemWritten>(fail(Code::not_found, of.id()));
  const auto begun = of.begin(thread, op, key, value, condition, staged);
  if (!begun.answer) {
    return Begun<ItemWritten>(std::unexpected(begun.answer.error()), begun.version);
  }
  const hash::HashWritten& written = *begun.answer;
  return Begun(Result<ItemWritten>({written.existed, written.applied, written.version}),
               begun.version);
}

}  // namespace

Result<std::shared_ptr<HashMap>> obtain(catalog::Catalog& catalog, const Create& asked) {
  return hash::create_hash_map(hash::hash_store_of(catalog), asked.name,
                               hash::options_of(asked.shape));
}

Result<std::shared_ptr<HashMap>> obtain(catalog::Catalog& catalog, const Open& asked) {
  return catalog.open<HashMap>(asked.name);
}

Result<Opened> execute(HashMap& of, const Open&) {
  if (of.is_dropped()) return fail(Code::not_found, of.id());
  return Opened::of(of);
}

Result<Numbers> execute(HashMap& of, const Stats&) {
  if (of.is_dropped()) return fail(Code::not_found, of.id());
  return Numbers{of.all_numbers()};
}

Begun<ItemWritten> begin(HashMap& of, HashThread& thread, const Put& asked,
                         hash::StagedPair* staged) {
  return begin_write(of, thread, WriteOp::put, asked.key, asked.value, staged);
}

Begun<ItemWritten> begin(HashMap& of, HashThread& thread, const Insert& asked,
                         hash::StagedPair* staged) {
  return begin_write(of, thread, WriteOp::insert, asked.key, asked.value, staged);
}

Begun<ItemWritten> begin(HashMap& of, HashThread& thread, const Update& asked,
                         hash::StagedPair* staged) {
  return begin_write(of, thread, WriteOp::update, asked.key, asked.value, staged);
}

Begun<ItemWritten> begin(HashMap& of, HashThread& thread, const Erase& asked) {
  return begin_write(of, thread, WriteOp::erase, asked.key, {});
}

Begun<ItemWritten> begin(HashMap& of, HashThread& thread, const CompareAndSet& asked,
                         hash::StagedPair* staged) {
  const auto kind = wire::condition_kind(asked.comparison.kind);
  if (!kind) return Begun<ItemWritten>(fail(Code::invalid_argument, asked.comparison.kind));
  const WriteOp op = asked.comparison.erase != 0 ? WriteOp::erase : WriteOp::put;
  return begin_write(of, thread, op, asked.key, asked.value, staged,
                     {*kind, asked.comparison.version, asked.expected});
}

Begun<Summed> begin(HashMap& of, HashThread& thread, const Add& asked) {
  if (of.is_dropped()) return Begun<Summed>(fail(Code::not_found, of.id()));
  const auto begun = of.begin_add(thread, asked.key, asked.amount);
  if (!begun.answer) return Begun<Summed>(std::unexpected(begun.answer.error()), begun.version);
  const hash::HashSummed& summed = *begun.answer;
  return Begun(Result<Summed>({summed.existed, summed.version, summed.sum}), begun.version);
}

}  // namespace espalier::hash_calls
