// SPDX-License-Identifier: Apache-2.0
// Methods of answering a query that end with the result in a client's memory: `local`, `remote` and
// `pull` of `espalier-bench table`.
//
// Thread: one at a time, each.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bench/node_transport.hpp"
#include "bench/table_data.hpp"
#include "kinds/table/format/table.hpp"

namespace espalier::bench {

struct TableWay {
  /// Writes the result into `into`, and returns its bytes. Errors: throws std::runtime_error.
  std::function<std::size_t(std::span<std::byte> into)> ask;
  /// The numbers of the last query, of a node; else none.
  std::function<wire::QueryNumbers()> numbers;
};

using WayMaker = std::function<TableWay(const std::shared_ptr<const TableData>&)>;

/// On rows in this process.
TableWay local_way(const std::shared_ptr<const TableData>& data, std::vector<std::byte> message);
/// By a process that keeps the whole result before it sends it.
TableWay remote_way(const std::shared_ptr<const TableData>& data,
                    const std::vector<std::byte>& message);
/// On all rows of a node's table. `message` is for plain rows: they are decrypted on arrival.
TableWay pull_way(const std::shared_ptr<const TableData>& data, NodeTransport transport,
                  std::vector<std::byte> message);

}  // namespace espalier::bench
