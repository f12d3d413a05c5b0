// SPDX-License-Identifier: Apache-2.0
// A node in a process of its own that holds a table of the benchmark, and another process that
// executes queries and sends its results: the servers of `pushed`, `pull` and `remote`.
//
// Thread: one at a time; the address from any.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "bench/node_process.hpp"
#include "bench/node_transport.hpp"
#include "bench/table_data.hpp"
#include "espalier/map.hpp"
#include "kinds/table/client/tables.hpp"
#include "kinds/table/run.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::bench {

/// One client's connection to a table on a node.
struct TableClient {
  Store store;
  std::shared_ptr<client::TableImpl> table;

  /// Errors: throws std::runtime_error.
  static TableClient open(const std::string& address, Access access = Access::rpc);
};

/// Whether clients read the memory of such a node by READs.
[[nodiscard]] bool has_reads(NodeTransport transport);

/// Starts a node and copies the table into it. Errors: throws std::runtime_error.
class TableNode {
 public:
  TableNode(const TableData& data, NodeTransport transport);
  /// Caches the last one, since consecutive points use the same.
  static std::shared_ptr<const TableNode> of(const std::shared_ptr<const TableData>& data,
                                             NodeTransport transport);
  static void forget();

  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  std::string address_;
  std::unique_ptr<NodeProcess> process_;

  static std::shared_ptr<const TableNode> kept_;
  static std::weak_ptr<const TableData> kept_for_;
  static NodeTransport kept_by_;
};

/// A server without streaming operators: it keeps a query's whole result, then sends it. Errors:
/// throws std::runtime_error.
class KeepingServer {
 public:
  /// Forks: the child makes a table of the same rows, since regions are not inherited.
  KeepingServer(const TableSpec& spec, std::span<const std::byte> message);
  ~KeepingServer();
  KeepingServer(const KeepingServer&) = delete;
  KeepingServer& operator=(const KeepingServer&) = delete;

  /// Has it execute the query, and receives the result. Returns the number of bytes received.
  std::size_t ask(std::span<std::byte> into) const;

 private:
  memory::Descriptor line_;
  pid_t process_ = -1;
};

/// Executes a query here, on a table's rows in this process. Returns the bytes of the result, at
/// most as many as `into` has. Errors: throws std::runtime_error.
std::size_t run_locally(const TableData& data, table::RowSource& source,
                        std::span<const std::byte> message, std::span<std::byte> into);

}  // namespace espalier::bench
