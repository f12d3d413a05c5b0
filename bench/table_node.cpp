// SPDX-License-Identifier: Apache-2.0
#include "bench/table_node.hpp"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "bench/huge_memory.hpp"
#include "bench/map_session.hpp"
#include "bench/own_node.hpp"
#include "client/store_impl.hpp"
#include "kinds/table/batch_run.hpp"
#include "kinds/table/snapshot_source.hpp"

namespace espalier::bench {
namespace {

constexpr const char* kTableName = "bench";
constexpr std::uint64_t kSpareBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kHashSeed = 1;
constexpr std::size_t kAppendBytes = std::size_t{1} << 20;

template <class T>
T table_value_or_throw(TableResult<T> result, std::string_view what) {
  if (!result) throw std::runtime_error(fmt::format("{}: {}", what, message(result.error())));
  return std::move(*result);
}

/// Memory that is filled from the beginning.
class MemorySink final : public table::RowSink {
 public:
  explicit MemorySink(std::span<std::byte> memory) : memory_(memory) {}
  std::span<std::byte> room() override { return memory_.subspan(used_); }
  void commit(std::size_t, std::size_t bytes) override { used_ += bytes; }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::span<std::byte> memory_;
  std::size_t used_ = 0;
};

void write_all(int line, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(line, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) throw std::runtime_error("cannot send a result");
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}

bool read_all(int line, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(line, bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

[[noreturn]] void be_the_server(int line, pid_t parent, const TableSpec& spec,
                                std::span<const std::byte> message) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  try {
    const TableData data(spec);
    const HugeBuffer result(std::max<std::uint64_t>(data.bytes(), 4096));
    std::byte asked{};
    while (read_all(line, {&asked, 1})) {
      table::SnapshotSource source(data.table());
      const std::uint64_t bytes =
          run_locally(data, source, message, {result.data(), result.bytes()});
      write_all(line, std::as_bytes(std::span(&bytes, 1)));
      write_all(line, {result.data(), bytes});
    }
  } catch (const std::exception&) {
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

bool has_reads(NodeTransport transport) { return transport == NodeTransport::shm; }

TableClient TableClient::open(const std::string& address, Access access) {
  Store store =
      value_or_throw(Store::connect(address, {.access = access}), "cannot connect to the node");
  auto table = table_value_or_throw(client::StoreImpl::of(store).tables()->open(kTableName),
                                    "cannot open the table");
  return {std::move(store), std::move(table)};
}

TableNode::TableNode(const TableData& data, NodeTransport transport) {
  node::Config config = own_node_config(1);
  config.memory.limit = data.bytes() + data.bytes() / 8 + kSpareBytes;
  prepare(config, transport);
  config.node.one_sided = has_reads(transport);
  address_ = config.node.fabric.empty() ? "unix:" + config.node.socket : config.node.fabric;
  process_ = std::make_unique<NodeProcess>(config);
  const Store store = value_or_throw(Store::connect(address_), "cannot connect to the node");
  const auto table = table_value_or_throw(
      client::StoreImpl::of(store).tables()->create(kTableName, data.table()->schema(),
                                                    {.encrypted = data.table()->encrypted()}),
      "cannot make a table");
  // An encrypted table is encrypted again, since each has a key of its own.
  auto from = data.new_cipher();
  auto to =
      from ? std::optional(value_or_throw(
                 table::CtrCipher::derived(TableData::key(), *table->salt(), table::kTableKeyInfo),
                 "cannot encrypt"))
           : std::nullopt;
  std::vector<std::byte> plain(from ? kAppendBytes : 0);
  const table::TableSnapshot snapshot(data.table());
  for (std::uint64_t page = 0; page < snapshot.pages(); ++page) {
    const auto rows = value_or_throw(snapshot.page(page), "cannot read the table");
    const std::size_t at_once = kAppendBytes / rows.row_bytes * rows.row_bytes;
    for (std::size_t at = 0; at < rows.bytes(); at += at_once) {
      const std::size_t bytes = std::min(at_once, rows.bytes() - at);
      if (from) {
        from->apply(rows.cipher_page, rows.page_offset + at, rows.rows + at, plain.data(), bytes);
      }
      static_cast<void>(
          table_value_or_throw(from ? table->append_encrypted(std::span(plain).first(bytes), *to)
                                    : table->append({rows.rows + at, bytes}),
                               "cannot append rows"));
    }
  }
}

std::shared_ptr<const TableNode> TableNode::kept_;
std::weak_ptr<const TableData> TableNode::kept_for_;
NodeTransport TableNode::kept_by_ = NodeTransport::unix_socket;

std::shared_ptr<const TableNode> TableNode::of(const std::shared_ptr<const TableData>& data,
                                               NodeTransport transport) {
  if (!kept_ || kept_for_.lock() != data || kept_by_ != transport) {
    kept_.reset();
    kept_ = std::make_shared<const TableNode>(*data, transport);
    kept_for_ = data;
    kept_by_ = transport;
  }
  return kept_;
}

void TableNode::forget() { kept_.reset(); }

KeepingServer::KeepingServer(const TableSpec& spec, std::span<const std::byte> message) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error("cannot make a pair of sockets");
  }
  line_ = memory::Descriptor(ends[0]);
  memory::Descriptor child_line(ends[1]);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ < 0) throw std::runtime_error("cannot start a process");
  if (process_ == 0) {
    line_.close();
    be_the_server(child_line.number(), parent, spec, message);
  }
}

KeepingServer::~KeepingServer() {
  // Servers that were forked after this one have the descriptor too; this closes the connection for
  // all.
  ::shutdown(line_.number(), SHUT_RDWR);
  line_.close();
  base::wait_for_child(process_);
}

std::size_t KeepingServer::ask(std::span<std::byte> into) const {
  const std::byte ask{1};
  write_all(line_.number(), {&ask, 1});
  std::uint64_t bytes = 0;
  const auto length = std::as_writable_bytes(std::span(&bytes, 1));
  if (!read_all(line_.number(), length) || bytes > into.size() ||
      !read_all(line_.number(), into.first(bytes))) {
    throw std::runtime_error("the process that keeps results has failed");
  }
  return bytes;
}

std::size_t run_locally(const TableData& data, table::RowSource& source,
                        std::span<const std::byte> message, std::span<std::byte> into) {
  const table::BatchProgram program(pipeline_of(message, data.table()->schema()));
  MemorySink sink(into);
  auto cipher = program.pipeline().decrypt ? data.new_cipher() : std::nullopt;
  table::BatchRun run(program, source, sink,
                      {.seed = kHashSeed, .decrypt = cipher ? &*cipher : nullptr});
  table::RunState state = table::RunState::running;
  while (state == table::RunState::running) state = run.step(1 << 16);
  if (state != table::RunState::done) throw std::runtime_error("a query of the benchmark failed");
  return sink.used();
}

}  // namespace espalier::bench
