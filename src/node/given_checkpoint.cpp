// SPDX-License-Identifier: Apache-2.0
#include "node/given_checkpoint.hpp"

#include <algorithm>
#include <utility>

#include "log/checkpoint_reader.hpp"
#include "log/unit_buffer.hpp"

namespace espalier::node {

Result<void> GivenCheckpoint::open_newest() {
  number_ = bytes_ = 0;
  sequence_ = 1;
  file_.reset();
  const auto names = folder_.names();
  if (!names) return std::unexpected(names.error());
  std::uint64_t newest = 0;
  for (const std::string& name : *names) {
    newest = std::max(newest, log::number_in(name, log::kCheckpointBegin, log::kWhole).value_or(0));
  }
  if (newest == 0) return {};
  auto file = folder_.open(log::numbered_name(log::kCheckpointBegin, newest, log::kWhole));
  if (!file) return std::unexpected(file.error());
  log::UnitBuffer unit;
  unit.reserve(log::kUnitBytes);
  const auto got = (*file)->read(0, unit.bytes().first(log::kUnitBytes));
  if (!got) return std::unexpected(got.error());
  const auto header = log::read_checkpoint_header(unit.bytes().first(*got), store_, newest);
  if (!header) return fail(Code::corrupt);
  number_ = newest;
  bytes_ = header->blocks_end;
  sequence_ = header->sequence;
  file_ = std::move(*file);
  return {};
}

Result<void> GivenCheckpoint::read(std::uint64_t offset, std::size_t most, std::string& into) {
  into.clear();
  if (offset >= bytes_ || offset % log::kUnitBytes != 0) return {};
  const std::uint64_t wanted = std::min<std::uint64_t>(most, bytes_ - offset);
  log::UnitBuffer piece;
  piece.reserve(wanted);
  const auto got = file_->read(offset, piece.bytes().first(wanted));
  if (!got) return std::unexpected(got.error());
  into.assign(reinterpret_cast<const char*>(piece.bytes().data()), *got);
  if (offset + *got < bytes_) return {};
  number_ = bytes_ = 0;
  file_.reset();
  return {};
}

}  // namespace espalier::node
