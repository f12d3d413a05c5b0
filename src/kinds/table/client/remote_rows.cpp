// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/remote_rows.hpp"

#include <cstring>

#include "kinds/table/calls.hpp"

namespace espalier::client {

TableResult<std::unique_ptr<TableRun>> RemoteRows::begin(HeldSession session, RemoteRead read) {
  const wire::RequestMessage<table_calls::Read> request(
      {read.table, {read.range.first, read.range.count}});
  // A chunk is any number of words: where its rows lie, then rows.
  auto chunks =
      RemoteRun::begin(std::move(session), request.get(), wire::kRowAlignment, read.limits);
  if (!chunks) return std::unexpected(std::move(chunks.error()));
  return std::unique_ptr<TableRun>(new RemoteRows(*std::move(chunks), std::move(read)));
}

TableResult<std::span<const std::byte>> RemoteRows::next() {
  const auto chunk = chunks_->next();
  if (!chunk || chunk->empty()) return chunk;
  wire::RowsPlace place{};
  const bool whole =
      chunk->size() > sizeof place && (chunk->size() - sizeof place) % read_.row_bytes == 0;
  if (whole) std::memcpy(&place, chunk->data(), sizeof place);
  if (!whole || place.first_row != next_row_) {
    chunks_->end();
    return refuse_table({Code::corrupt, 0, 0}, "the node's answer has other rows than were asked");
  }
  const std::span<const std::byte> rows = chunk->subspan(sizeof place);
  next_row_ += rows.size() / read_.row_bytes;
  if (!read_.cipher) return rows;
  plain_.resize(rows.size());
  read_.cipher->apply(place.cipher_page, place.page_offset, rows.data(), plain_.data(),
                      rows.size());
  return std::span<const std::byte>(plain_);
}

}  // namespace espalier::client
